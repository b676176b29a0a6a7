"""Progress of running tasks: kept here, published at once, stored once a second for all of them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from parsyn.hub.broker import Connection
from parsyn.services import advance
from parsyn.services.advance import Advance
from parsyn.services.context import Context
from parsyn.wire.worker import MetricPoint, State

log = logging.getLogger(__name__)
STORE_SECONDS = 1.0


@dataclass
class Pending:
    """What is not stored yet of one attempt, and whom to acknowledge it to."""

    progress: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    seq: int = 0
    acks: list[tuple[Connection, int]] = field(default_factory=list)

    def under(self, newer: Pending) -> Pending:
        """This, overlaid with what came later."""
        return Pending(
            newer.progress or self.progress,
            {**self.metrics, **newer.metrics},
            max(self.seq, newer.seq),
            self.acks + newer.acks,
        )


class ProgressBook:
    """Only for the event loop's thread; `run` stores until it is cancelled."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pending: dict[tuple[int, int], Pending] = {}

    def state(self, connection: Connection, message: State) -> dict[str, Any]:
        """Note a state; returns it as `ProgressOut`."""
        progress = {
            "step": message.step,
            "total_steps": message.total_steps,
            "epoch": message.epoch,
            "percent": message.percent,
            "eta_seconds": message.eta,
            "phase": message.phase,
        }
        pending = self._pending.setdefault((message.task_id, message.attempt), Pending())
        pending.progress = progress
        pending.seq = max(pending.seq, message.seq)
        pending.acks.append((connection, message.seq))
        return progress

    def points(self, task_id: int, attempt: int, points: tuple[MetricPoint, ...]) -> None:
        """Note the latest value of each metric."""
        pending = self._pending.setdefault((task_id, attempt), Pending())
        for point in points:
            pending.metrics.update(point.values)

    def take(self, task_id: int, attempt: int) -> Pending | None:
        """What another write of the same attempt shall store along."""
        return self._pending.pop((task_id, attempt), None)

    def give_back(self, task_id: int, attempt: int, older: Pending | None) -> None:
        """It could not be stored."""
        if older is not None:
            newer = self._pending.get((task_id, attempt), Pending())
            self._pending[(task_id, attempt)] = older.under(newer)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(STORE_SECONDS)
            await self.store()

    async def store(self) -> None:
        """Write all that is pending in one transaction, then acknowledge it."""
        if not self._pending:
            return
        taken, self._pending = self._pending, {}
        rows = [as_advance(task_id, attempt, p) for (task_id, attempt), p in taken.items()]
        try:
            await self._context.database.write(advance.store, rows)
        except Exception as error:
            for (task_id, attempt), pending in taken.items():
                self.give_back(task_id, attempt, pending)
            log.warning("progress is not stored yet: %s", error)
            return
        for (task_id, attempt), pending in taken.items():
            acknowledge(task_id, attempt, pending)


def as_advance(task_id: int, attempt: int, pending: Pending) -> Advance:
    return Advance(task_id, attempt, pending.progress, pending.metrics, pending.seq)


def acknowledge(task_id: int, attempt: int, pending: Pending | None) -> None:
    for connection, seq in pending.acks if pending else ():
        connection.outbox.ack(task_id, attempt, seq)
