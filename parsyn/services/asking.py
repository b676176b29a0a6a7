"""For whom work is done right now: what the log and the audit say beside it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Asking:
    """A request: its id, and the address that it came from."""

    request_id: str = ""
    ip: str | None = None


asking: ContextVar[Asking] = ContextVar("asking", default=Asking())  # noqa: B039
