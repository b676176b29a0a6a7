"""Checks of `parsyn doctor`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal


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
