"""Offers queued tasks as soon as something may fit: woken by events, never by a clock alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import peewee

from parsyn.clock import now
from parsyn.services import scheduling
from parsyn.services.context import Context

log = logging.getLogger(__name__)
EXPLAIN_SECONDS = 1.0
"""At most so often all that waits is compared with the whole fleet."""
TOLD_AT_ONCE = 5
"""So that nobody waits long for the database meanwhile."""


class Dispatcher:
    """Only for the event loop's thread; `run` works until it is cancelled.

    `on_offered` hears how many seconds after the first wake-up tasks were offered.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._wake = asyncio.Event()
        self._woken_at = 0.0
        self.on_offered: Callable[[float], None] = lambda seconds: None
        self._expiring: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        if not self._wake.is_set():
            self._woken_at = time.monotonic()
        self._wake.set()

    async def run(self) -> None:
        explaining = asyncio.create_task(self._explain())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._dispatch()
                self._changed.set()
        finally:
            for task in (*self._expiring, explaining):
                task.cancel()

    async def _explain(self) -> None:
        """Keep what waiting jobs say true, a moment after something has changed."""
        explainer = scheduling.Explainer()
        database = self._context.database
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                new = await database.read(explainer.look, self._context)
                for some in peewee.chunked(new, TOLD_AT_ONCE):
                    await database.write(explainer.tell, self._context, some)
            except Exception:
                log.exception("why jobs wait could not be said; it is tried again")
            await asyncio.sleep(EXPLAIN_SECONDS)

    async def _dispatch(self) -> None:
        woken_at = self._woken_at
        try:
            offered = await self._context.database.write(scheduling.dispatch, self._context)
        except Exception:
            log.exception("queued tasks could not be offered; the reconciler tries again")
            return
        if offered:
            self.on_offered(time.monotonic() - woken_at)
            self._expect_answers()

    def _expect_answers(self) -> None:
        task = asyncio.create_task(self._expire())
        self._expiring.add(task)
        task.add_done_callback(self._expiring.discard)

    async def _expire(self) -> None:
        """The reconciler would find them too, but up to ten seconds later."""
        seconds = self._context.settings.number("leases.offer_seconds")
        await asyncio.sleep(seconds + 0.05)
        await self._context.database.write(scheduling.expire_offers, self._context, now())
