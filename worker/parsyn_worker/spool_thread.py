"""The spool's one thread, so that the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from parsyn.wire.worker import TaskKey
from parsyn_worker.spool import Build, Spool

log = logging.getLogger(__name__)

FULL_SECONDS = 1.0
"""Between tries while the disk takes nothing."""

P = ParamSpec("P")
R = TypeVar("R")


class SpoolThread:
    """Run methods of a `Spool` in order; `changed` is set whenever there is more to send."""

    def __init__(self, path: Path, limit: int) -> None:
        self.changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self._spool = self._thread.submit(_open, path, limit).result()

    async def call(
        self, method: Callable[Concatenate[Spool, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """A full disk is waited for: what the spool takes may not be lost."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(
                    self._thread, lambda: method(self._spool, *args, **kwargs)
                )
            except sqlite3.OperationalError as error:
                log.error("The spool cannot write (%s). Free space on this disk.", error)
            await asyncio.sleep(FULL_SECONDS)

    async def put(self, key: TaskKey, build: Build, *, delivered: int | None = None) -> None:
        """Keep a message until the hub has acknowledged it, and let it be sent."""
        await self.call(Spool.put, key, build, delivered=delivered)
        self.changed.set()

    async def pending(self) -> bool:
        """Whether the hub has still to acknowledge something."""
        return await self.call(Spool.size) > 0

    def close(self) -> None:
        self._thread.submit(self._spool.close).result()
        self._thread.shutdown()


def _open(path: Path, limit: int) -> Spool:
    """A damaged file is put aside: an agent that works is worth more than what it held."""
    try:
        return Spool(path, limit)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        log.error("%s is damaged (%s) and is put aside.", path, error)
        for end in ("", "-wal", "-shm"):
            part = path.with_name(path.name + end)
            if part.exists():
                part.replace(part.with_name(part.name + ".damaged"))
        return Spool(path, limit)
