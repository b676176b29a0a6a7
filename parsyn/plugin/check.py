"""Checks of `parsyn doctor`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from parsyn.errors import ParsynError


@dataclass(frozen=True)
class Finding:
    """`found` says what is, `advice` what to do when the level is not ok."""

    level: Literal["ok", "warn", "error"]
    found: str
    advice: str | None = None


class Check(ABC):
    """One thing that can be wrong."""

    title: ClassVar[str]

    @abstractmethod
    def run(self) -> Finding:
        """Look, change nothing."""


def as_row(title: str, finding: Finding, fixed: str | None = None) -> dict[str, Any]:
    """What `parsyn doctor` shows of a check: {"title", "level", "found", "advice", "fixed"}."""
    return {
        "title": title,
        "level": finding.level,
        "found": finding.found,
        "advice": finding.advice,
        "fixed": fixed,
    }


def check_failed(error: Exception, advice: str) -> Finding:
    """A check that broke must not hide the others."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return Finding("error", f"the check itself failed ({what})", advice)


def repaired(
    row: dict[str, Any], fix: Callable[[], str | None], look_again: Callable[[], Finding]
) -> dict[str, Any]:
    """The row after a try to repair: `fix` says what it did, or None where it can do nothing."""
    try:
        done = fix()
    except (OSError, ParsynError) as error:
        advice = f"It could not be repaired: {error}. {row['advice'] or ''}".strip()
        return {**row, "advice": advice}
    return row if done is None else as_row(row["title"], look_again(), done)
