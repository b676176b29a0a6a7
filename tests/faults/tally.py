"""What the fault cases of this run came to; the last line before pytest's own summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.faults.invariants import Doubled, Lost

CASE = "fault_case"


def note(item: pytest.Item, arguments: str, error: BaseException | None) -> None:
    """One case, and what it raised, for the report of `item`; `arguments` repeat it."""
    item.user_properties.append((CASE, [arguments, type(error).__name__ if error else ""]))


@dataclass(eq=False)
class Tally:
    """A plugin that counts, from the reports, wherever the tests ran.

    `repeat` says how each bad case is repeated.
    """

    run: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    repeat: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = dict(report.user_properties).get(CASE)
        if report.when == "call" and isinstance(case, list):
            self.count(*case)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.run:
            for line in self.lines():
                terminalreporter.write_line(line)

    def count(self, arguments: str, error: str) -> None:
        """One case, and the name of what it raised, if it did."""
        self.run += 1
        if not error:
            return
        self.lost += error == Lost.__name__
        self.doubled += error == Doubled.__name__
        self.wrong += error not in (Lost.__name__, Doubled.__name__)
        self.repeat.append(f"{error}: make faults ARGS='{arguments}'")

    def lines(self) -> list[str]:
        total = f"{self.run} cases run, {self.lost} lost, {self.doubled} doubled"
        return [*self.repeat, f"Faults: {total}, {self.wrong} otherwise wrong."]
