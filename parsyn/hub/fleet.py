"""When each connected worker was last heard and what it measured; stored every few seconds."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from parsyn.clock import now
from parsyn.hub.broker import Broker, Connection
from parsyn.services import presence
from parsyn.services.context import Context
from parsyn.wire.worker import CloseCode

log = logging.getLogger(__name__)
LONGEST_SECONDS = 5.0
AT_A_TIME = 100


class Fleet:
    """Only for the event loop's thread; `run` stores until it is cancelled."""

    def __init__(self, context: Context, broker: Broker) -> None:
        self._context = context
        self._broker = broker
        self._heard: dict[int, tuple[str, float, dict[str, Any] | None]] = {}
        offline = context.settings.number("leases.offline_seconds")
        self.every = min(LONGEST_SECONDS, offline / 4)

    def heard(self, connection: Connection, metrics: dict[str, Any] | None = None) -> None:
        """A message came."""
        before = self._heard.get(connection.worker_id)
        kept = metrics or (before[2] if before else None)
        self._heard[connection.worker_id] = (connection.id, now(), kept)

    def forget(self, worker_id: int) -> None:
        self._heard.pop(worker_id, None)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            await self.store()
            await self.turn_out()

    async def turn_out(self) -> None:
        """Close the sockets of workers that are not welcome any more (`presence.unwelcome`).

        They are told at once as a rule; this is for when another process did it and Redis did not
        pass the word.
        """
        connected = {c.worker_id: c for c in self._broker.connections()}
        if not connected:
            return
        keys = {worker_id: one.key_hash for worker_id, one in connected.items()}
        try:
            gone = await self._context.database.read(presence.unwelcome, keys)
        except Exception as error:
            log.warning("whether all workers may stay is not known: %s", error)
            return
        for worker_id, reason in gone.items():
            connected[worker_id].outbox.close(CloseCode.REVOKED, reason)

    async def store(self) -> None:
        """All that were heard since the last one, some at a time, so that nobody waits for all."""
        heard, self._heard = self._heard, {}
        ids = list(heard)
        for start in range(0, len(ids), AT_A_TIME):
            some = {id: heard[id] for id in ids[start : start + AT_A_TIME]}
            try:
                await self._context.database.write(presence.touch, self._context, some)
            except Exception as error:
                log.warning("when workers were heard is not stored yet: %s", error)
                self._heard = {**some, **self._heard}
