"""Every few seconds: what events did not bring about is found in the database and done."""

from __future__ import annotations

import asyncio
import logging
import time

from parsyn.clock import now
from parsyn.services import (
    audit,
    datasets,
    leases,
    outbox,
    scheduling,
    signals,
    uploads,
    workers,
)
from parsyn.services.context import Context

log = logging.getLogger(__name__)
LONGEST_SECONDS = 10.0
TIDY_SECONDS = 3600.0
MACHINE_DAYS = 8
"""So long is kept what machines measure of themselves every few seconds; a day of it is shown."""


class Reconciler:
    """`run` works until it is cancelled. No lease expires within the boot grace, nor for as long
    again after this process itself was away (suspended, stopped, or its clock set)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        settings = context.settings
        self.every = min(LONGEST_SECONDS, settings.number("leases.offline_seconds") / 4)
        self._grace = settings.number("leases.boot_grace_seconds")
        self._patient_until = time.monotonic() + self._grace
        self._last = (now(), time.monotonic())
        self._tidy_at = 0.0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            try:
                await self.once()
            except Exception:
                log.exception("the reconciler failed; it tries again")

    async def once(self) -> None:
        """One round."""
        write = self._context.database.write
        self._look_at_clocks()
        if time.monotonic() >= self._patient_until:
            await write(leases.expire, self._context, now())
        await write(scheduling.expire_offers, self._context, now())
        await write(outbox.redeliver, self._context)
        await write(datasets.find_lost, self._context)
        await write(uploads.expire, self._context)
        await write(signals.wake, self._context)
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + TIDY_SECONDS
            await write(audit.forget_old, self._context)
            await self._forget_machines()

    async def _forget_machines(self) -> None:
        ids = await self._context.database.read(workers.every_id)
        before = now() - MACHINE_DAYS * 86_400
        await asyncio.to_thread(self._context.metrics.forget_machines, ids, before)

    def _look_at_clocks(self) -> None:
        """Workers that could not be heard while this process was away did nothing wrong."""
        wall, steady = now(), time.monotonic()
        passed_wall, passed_steady = wall - self._last[0], steady - self._last[1]
        self._last = (wall, steady)
        slack = max(1.0, 2 * self.every)
        was_away = passed_steady > self.every + slack
        clock_was_set = abs(passed_wall - passed_steady) > slack
        if was_away or clock_was_set:
            log.warning("this hub was away or its clock was set: no lease expires for a while")
            self._patient_until = max(self._patient_until, steady + self._grace)
