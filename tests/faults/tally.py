"""What the fault cases of this run came to; the last line before pytest's own summary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.faults.invariants import Doubled, Lost


@dataclass
class Tally:
    """`repeat` says how each bad case is repeated."""

    run: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    repeat: list[str] = field(default_factory=list)

    @contextmanager
    def counting(self, name: str) -> Iterator[None]:
        """One case: how it ends is counted, and what it raises goes on."""
        self.run += 1
        try:
            yield
        except BaseException as error:
            kind = type(error)
            self.lost += kind is Lost
            self.doubled += kind is Doubled
            self.wrong += kind not in (Lost, Doubled)
            self.repeat.append(f"{kind.__name__}: make faults ARGS='--fault-case={name}'")
            raise

    def lines(self) -> list[str]:
        total = f"{self.run} cases run, {self.lost} lost, {self.doubled} doubled"
        return [*self.repeat, f"Faults: {total}, {self.wrong} otherwise wrong."]


TALLY = Tally()
