"""The hub processes that share the database: this one says that it lives, and watches the others.

A beat that has not moved for a while, by this process's own clock, is that of a dead process: its
connections are cleared, and no others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from parsyn.hub.broker import Broker
from parsyn.services import presence, processes
from parsyn.services.context import Context

log = logging.getLogger(__name__)
LONGEST_SECONDS = 3.0
DEAD_AFTER_BEATS = 4
ABSENT_SECONDS = 10.0
Spawn = Callable[[Coroutine[Any, Any, None], str], object]


class Members:
    """Only for the event loop's thread; `run` beats until it is cancelled.

    `others` are the names of the other live ones; `on_gone` hears the name of one that died.
    """

    def __init__(self, context: Context, broker: Broker, spawn: Spawn) -> None:
        self._context, self._broker, self._spawn = context, broker, spawn
        self.others: frozenset[str] = frozenset()
        self.on_gone: Callable[[str], None] = lambda name: None
        offline = context.settings.number("leases.offline_seconds")
        self.every = min(LONGEST_SECONDS, offline / 6)
        self._seen: dict[str, tuple[int, float]] = {}
        self._last = time.monotonic()

    async def join(self) -> None:
        await self._context.database.write(processes.join, self._context)
        await self.once()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            try:
                await self.once()
            except Exception as error:
                log.warning("whether the other hub processes live is not known: %s", error)

    async def once(self) -> None:
        """One beat, and a look at those of the others."""
        connections = {c.worker_id: c.id for c in self._broker.connections()}
        beats, ended = await self._context.database.write(
            processes.beat, self._context, connections
        )
        for worker_id, how in ended.items():
            connection = self._broker.connection(worker_id)
            if connection is not None and connection.id == connections[worker_id]:
                connection.outbox.close(*how)
        beats.pop(self._context.bus.origin, None)
        self._note(beats)
        at = time.monotonic()
        limit = DEAD_AFTER_BEATS * self.every
        away, self._last = at - self._last > limit / 2, at
        if away:
            # This process, or the database, was away: the others may have been silent for no fault.
            self._seen = {name: (beat, at) for name, (beat, _) in self._seen.items()}
        silent = {name: beat for name, (beat, seen) in self._seen.items() if at - seen > limit}
        if silent:
            await self._bury(silent)

    def _note(self, beats: dict[str, int]) -> None:
        at = time.monotonic()
        for name in [name for name in self._seen if name not in beats]:
            del self._seen[name]
        for name, beat in beats.items():
            if name not in self._seen or self._seen[name][0] != beat:
                self._seen[name] = (beat, at)
        known, self.others = self.others, frozenset(beats)
        for name in known - self.others:
            self.on_gone(name)

    async def _bury(self, silent: dict[str, int]) -> None:
        log.warning("a hub process has died: %s", ", ".join(silent))
        workers = await self._context.database.write(processes.bury_silent, self._context, silent)
        for name in silent:
            self._seen.pop(name, None)
            self.others -= {name}
            self.on_gone(name)
        if workers:
            self._spawn(self._await_return(workers), "workers of a dead process")

    async def _await_return(self, workers: list[int]) -> None:
        """Most come back to another process at once; people see the rest as offline."""
        await asyncio.sleep(min(ABSENT_SECONDS, 4 * self.every))
        for worker_id in workers:
            await self._context.database.write(presence.absent, self._context, worker_id)

    async def leave(self) -> None:
        """Say goodbye; the sockets are closed already."""
        names = [self._context.bus.origin]
        await self._context.database.write(processes.bury, self._context, names)
