"""What the fault cases of this run came to; the last line before pytest's own summary."""

from __future__ import annotations

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

    def count(self, arguments: str, error: BaseException | None) -> None:
        """One case, and what it raised; `arguments` repeat it."""
        self.run += 1
        if error is None:
            return
        self.lost += isinstance(error, Lost)
        self.doubled += isinstance(error, Doubled)
        self.wrong += not isinstance(error, Lost | Doubled)
        self.repeat.append(f"{type(error).__name__}: make faults ARGS='{arguments}'")

    def lines(self) -> list[str]:
        total = f"{self.run} cases run, {self.lost} lost, {self.doubled} doubled"
        return [*self.repeat, f"Faults: {total}, {self.wrong} otherwise wrong."]
