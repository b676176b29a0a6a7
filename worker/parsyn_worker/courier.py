"""Deliver an attempt's checkpoints and result in order: store the files, then spool the message."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from parsyn import crash
from parsyn.wire.refs import FileRef
from parsyn.wire.states import FailureReason
from parsyn.wire.tasks import Failure, Manifest
from parsyn.wire.worker import Checkpoint, Result, Stored, TaskKey
from parsyn_worker.events import CheckpointEvent
from parsyn_worker.session import Session
from parsyn_worker.spool import Delivery, Spool
from parsyn_worker.spool_thread import SpoolThread
from parsyn_worker.transfer import GaveUp, Progress, Transfer, part_of

log = logging.getLogger(__name__)

MOST_CHECKPOINTS = 4
"""Checkpoints that may wait while the hub is away; older ones that are not the best make room."""


class Courier:
    """One for an attempt. `run` ends when its result is spooled, or raises StaleAttempt."""

    def __init__(
        self, key: TaskKey, spool: SpoolThread, transfer: Transfer, session: Session
    ) -> None:
        self.key, self.spool, self.transfer, self.session = key, spool, transfer, session
        self._more = asyncio.Event()
        self._doing: int | None = None
        self.on_progress: Progress = lambda done, total: None
        self.on_trouble: Callable[[str], None] = log.warning
        self.before_message: Callable[[], Awaitable[None]] = _nothing
        self._step: asyncio.Task[None] | None = None

    async def checkpoint(self, event: CheckpointEvent) -> None:
        # What led up to it must be as safe as itself: who goes on from it will not say it again.
        await self.before_message()
        body = event.model_dump_json(include={"at", "step", "epoch", "metrics", "best"})
        await self._note("checkpoint", event.folder, body)
        await self._make_room()
        self._more.set()

    async def result(
        self,
        outcome: str,
        at: float,
        *,
        folder: Path | None = None,
        facts: dict[str, Any] | None = None,
        failure: Failure | None = None,
    ) -> None:
        """The attempt's last word; everything handed over before goes first."""
        why = f": {failure.reason}: {failure.message}" if failure else ""
        log.info("Task %d (attempt %d) %s%s", self.key.task_id, self.key.attempt, outcome, why)
        body = {
            "outcome": outcome,
            "at": at,
            "facts": facts or {},
            "failure": failure.model_dump(mode="json") if failure else None,
        }
        await self._note("result", folder, json.dumps(body))
        self._more.set()

    async def _note(
        self, kind: Literal["checkpoint", "result"], folder: Path | None, body: str
    ) -> None:
        crash.point("handover.before")
        await self.spool.call(Spool.deliver, self.key, kind, folder, body)
        crash.point("handover.after")

    async def run(self) -> None:
        while True:
            self._more.clear()
            waiting = await self.spool.call(Spool.deliveries, self.key)
            if not waiting:
                await self._more.wait()
                continue
            delivery = waiting[0]
            self._doing = delivery.id
            if not await self._done(delivery):
                continue
            if delivery.folder:
                await asyncio.to_thread(shutil.rmtree, delivery.folder, True)
            if delivery.kind == "result":
                return

    def interrupt(self) -> None:
        """Leave what is being delivered and look again at what there is."""
        if self._step:
            self._step.cancel()

    async def _done(self, delivery: Delivery) -> bool:
        """False when it was interrupted."""
        self._step = asyncio.create_task(self._deliver(delivery))
        try:
            await asyncio.wait({self._step})
        finally:
            self._step.cancel()
        if self._step.cancelled():
            return False
        self._step.result()
        return True

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            if delivery.kind == "checkpoint":
                await self._checkpoint(delivery)
            else:
                await self._result(delivery)
        except (GaveUp, OSError) as error:
            self.on_trouble(f"A {delivery.kind} was lost: {error}.")
            if delivery.kind == "checkpoint":
                await self.spool.call(Spool.drop_delivery, delivery.id)
            else:
                await self._lost(delivery, str(error))

    async def _checkpoint(self, delivery: Delivery) -> None:
        values = json.loads(delivery.body)
        files = await self._store(delivery, f"checkpoints/{values['step']}")
        # Whoever resumes from here does not report these steps again.
        await self.before_message()
        await self.spool.put(
            self.key,
            lambda seq: Checkpoint(**self.key.model_dump(), seq=seq, files=files, **values),
            delivered=delivery.id,
        )

    async def _result(self, delivery: Delivery) -> None:
        values = json.loads(delivery.body)
        files = await self._store(delivery, "result")
        await self.before_message()
        facts = values.pop("facts")
        completed = values["outcome"] == "completed"
        manifest = Manifest(files=files, facts=facts) if completed else None
        await self.spool.put(
            self.key,
            lambda seq: Result(**self.key.model_dump(), seq=seq, manifest=manifest, **values),
            delivered=delivery.id,
        )

    async def _lost(self, delivery: Delivery, why: str) -> None:
        failure = Failure(
            reason=FailureReason.INTERNAL,
            message="The task ended well, but its result could not be stored.",
            line=why,
        )
        at = json.loads(delivery.body)["at"]
        await self.spool.put(
            self.key,
            lambda seq: Result(
                **self.key.model_dump(), seq=seq, at=at, outcome="failed", failure=failure
            ),
            delivered=delivery.id,
        )

    async def _store(self, delivery: Delivery, prefix: str) -> tuple[FileRef, ...]:
        folder = delivery.folder
        if folder is None:
            return ()
        sources = await asyncio.to_thread(_listing, folder)
        total, done, stored = sum(size for _, size in sources), 0, []
        for path, size in sources:
            name = path.relative_to(folder).as_posix()
            file = await self.transfer.store(
                self.key,
                f"{prefix}/{name}",
                path,
                part_of(done, total, self.on_progress),
            )
            file = file.model_copy(update={"path": name})
            stored.append(file)
            await self.session.send(Stored(**self.key.model_dump(), file=file))
            done += size
        return tuple(stored)

    async def _make_room(self) -> None:
        waiting = [
            delivery
            for delivery in await self.spool.call(Spool.deliveries, self.key)
            if delivery.kind == "checkpoint" and delivery.id != self._doing
        ]
        plain = [delivery for delivery in waiting if not json.loads(delivery.body)["best"]]
        for delivery in plain[: max(0, len(waiting) - MOST_CHECKPOINTS)]:
            await self.spool.call(Spool.drop_delivery, delivery.id)
            if delivery.folder:
                await asyncio.to_thread(shutil.rmtree, delivery.folder, True)


def _listing(folder: Path) -> list[tuple[Path, int]]:
    """Every regular file with its size, in name order; links are not followed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise OSError(f"{path.name} is a link, and a task may hand over only real files")
        if path.is_file():
            found.append((path, path.stat().st_size))
    return found


async def _nothing() -> None:
    return None
