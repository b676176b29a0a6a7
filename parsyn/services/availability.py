"""Whether a worker may be offered anything now: what its owner allows, and who else is at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from parsyn.services.machines import Machine
from parsyn.store.workers import Worker

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
AHEAD = 8
"""Days to look for the next opening: one more than a week, for stretches over midnight."""
TOLERATED_SHARE, TOLERATED_BYTES = 0.10, 1 << 30
"""What a desktop may hold of a GPU before somebody counts as working there."""


def held_back(worker: Worker | Machine, at: float) -> str | None:
    """Why a connected worker is offered nothing new at `at`, in a sentence; None when it is."""
    if worker.draining:
        return "It is draining."
    if worker.paused:
        return "It is paused."
    limits: Mapping[str, Any] = worker.limits or {}
    hours = limits.get("working_hours") if limits else None
    if hours and not is_open(hours, at):
        return _closed(hours, at)
    metrics = worker.metrics
    return foreign_use(metrics) if metrics else None


def foreign_use(metrics: Mapping[str, Any]) -> str | None:
    """A sentence where other programs hold more of the GPU than a desktop does."""
    held, total = foreign_bytes(metrics), metrics.get("vram_total") or 0
    if held <= max(TOLERATED_BYTES, TOLERATED_SHARE * total):
        return None
    return f"Other programs use {_gib(held)} of the {_gib(total)} GiB of its GPU."


def foreign_bytes(metrics: Mapping[str, Any] | None) -> int:
    """What programs that are not the agent's hold of the GPU, as far as it is known."""
    return int((metrics or {}).get("vram_foreign") or 0)


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f}"


# --- working hours ---------------------------------------------------------------------------


def is_open(hours: Sequence[Mapping[str, Any]], at: float) -> bool:
    """Whether `at` (seconds since the epoch) lies in one of the stretches; no stretches: always."""
    return not hours or any(
        begin <= at < end for stretch in hours for begin, end in _spans(stretch, at, range(-1, 1))
    )


def next_opening(hours: Sequence[Mapping[str, Any]], at: float) -> float | None:
    """When the next stretch after `at` begins."""
    begins = (
        begin for stretch in hours for begin, _ in _spans(stretch, at, range(AHEAD)) if begin > at
    )
    return min(begins, default=None)


def _spans(stretch: Mapping[str, Any], at: float, days: range) -> Iterator[tuple[float, float]]:
    """(begin, end) of a stretch on the days that are so far from the local day of `at`.

    Ends are made of the wall clock, so a stretch is an hour longer or shorter when it changes.
    """
    zone = ZoneInfo(stretch["timezone"])
    start, end = (time.fromisoformat(stretch[name]) for name in ("start", "end"))
    today = datetime.fromtimestamp(at, zone).date()
    for ahead in days:
        day = today + timedelta(days=ahead)
        if DAYS[day.weekday()] in stretch["days"]:
            last = day if end > start else day + timedelta(days=1)
            yield _moment(day, start, zone), _moment(last, end, zone)


def _moment(day: date, clock: time, zone: ZoneInfo) -> float:
    return datetime.combine(day, clock, zone).timestamp()


def _closed(hours: Sequence[Mapping[str, Any]], at: float) -> str:
    opening = next_opening(hours, at)
    if opening is None:
        return "It is outside of its working hours."
    zone = ZoneInfo(hours[0]["timezone"])
    local = datetime.fromtimestamp(opening, zone)
    day = DAYS[local.weekday()].capitalize()
    return f"It is outside of its working hours until {day} {local:%H:%M} ({zone.key})."
