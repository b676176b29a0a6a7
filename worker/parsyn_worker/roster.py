"""The attempts that this agent has taken on: accepts offers, passes on cancels, recovers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parsyn import crash
from parsyn.wire.states import FailureReason, WorkerType
from parsyn.wire.tasks import DownloadSpec, Failure
from parsyn.wire.worker import Accepted, Cancel, Offer, Refused, TaskKey
from parsyn_worker import probe
from parsyn_worker.attempt import RESTARTED, Attempt, Stop, Tools, remove_folder
from parsyn_worker.courier import Courier
from parsyn_worker.failures import classify
from parsyn_worker.journal import Journal
from parsyn_worker.session import Session
from parsyn_worker.spool import Spool
from parsyn_worker.spool_thread import SpoolThread
from parsyn_worker.transfer import StaleAttempt, Transfer

log = logging.getLogger(__name__)


@dataclass
class Entry:
    """An attempt that works, or (with `attempt` None) one of which only files are delivered."""

    key: TaskKey
    name: str
    courier: Courier
    delivery: asyncio.Task[None]
    journal: Journal | None = None
    attempt: Attempt | None = None
    work: asyncio.Task[None] | None = None

    @property
    def working(self) -> bool:
        return self.work is not None and not self.work.done()


class Roster:
    """At most one attempt works at a time; finished ones may still deliver beside it."""

    def __init__(
        self,
        tools: Tools,
        spool: SpoolThread,
        session: Session,
        transfer: Transfer,
        folder: Path,
        on_begin: Callable[[], None],
        on_change: Callable[[], None],
    ) -> None:
        self.tools, self.spool, self.session, self.transfer = tools, spool, session, transfer
        self.folder, self.on_begin, self.on_change = folder, on_begin, on_change
        self.draining = self.leaving = False
        self._entries: dict[tuple[int, int], Entry] = {}
        self._side_jobs: set[asyncio.Task[Any]] = set()

    def running(self) -> tuple[TaskKey, ...]:
        """Every attempt for which this agent still owes an answer."""
        return tuple(entry.key for entry in self._entries.values())

    def working(self) -> Entry | None:
        return next((entry for entry in self._entries.values() if entry.working), None)

    # --- from the hub ------------------------------------------------------------------------

    def offer(self, offer: Offer, *, patient: bool = True) -> None:
        """Accept or refuse at once; where an older attempt of the task has still to stop here
        (and `patient`), when it has."""
        key = TaskKey(task_id=offer.task_id, attempt=offer.attempt)
        self._replace_older(key)
        if _pair(key) in self._entries:
            self._side(self.session.send(Accepted(**key.model_dump())))
            return
        working = self.working()
        if patient and working and working.key.task_id == key.task_id:
            self._side(self._offer_after(working, offer))
            return
        reason = self._objection(offer)
        if reason:
            log.info("Refused task %d: %s", offer.task_id, reason)
            self._side(self.session.send(Refused(**key.model_dump(), reason=reason)))
            return
        log.info("Accepted task %d (attempt %d): %s", key.task_id, key.attempt, offer.name)
        self._begin(offer, key)

    def cancel(self, cancel: Cancel) -> None:
        entry = self._entries.get((cancel.task_id, cancel.attempt))
        if entry is None:
            return
        why = Stop(cancel.reason)
        log.info("Task %d is to stop (%s).", cancel.task_id, why)
        if entry.working and entry.attempt:
            entry.attempt.stop(why)
        elif why is Stop.STALE:
            entry.delivery.cancel()
        elif why is Stop.USER:
            self._side(self._withdraw(entry))

    def stale(self, key: TaskKey) -> None:
        self.cancel(Cancel(task_id=key.task_id, attempt=key.attempt, reason="stale"))

    # --- from the agent ----------------------------------------------------------------------

    async def recover(self) -> None:
        """After a start: answer for attempts that a former process left behind."""
        for key in await self.spool.call(Spool.unfinished):
            log.warning("Task %d was cut off by a restart of this agent.", key.task_id)
            courier = Courier(key, self.spool, self.transfer, self.session)
            await courier.result("failed", time.time(), failure=RESTARTED)
        owing = {_pair(key): key for key in await self.spool.call(Spool.delivering)}
        for key in owing.values():
            self._resume_delivery(key)
        await asyncio.to_thread(self._sweep, {_folder_name(key) for key in owing.values()})

    def stop_working(self, why: Stop) -> None:
        entry = self.working()
        if entry and entry.attempt:
            entry.attempt.stop(why)

    async def shut_down(self) -> None:
        """Stop what works and keep its answer; what is being delivered goes on after a restart."""
        self.leaving = True
        self.stop_working(Stop.SHUTDOWN)
        works = [entry.work for entry in self._entries.values() if entry.work]
        await asyncio.gather(*works, return_exceptions=True)

    async def close(self) -> None:
        """Let go of everything at once. What the spool holds is for the next start."""
        tasks = [*self._side_jobs]
        for entry in self._entries.values():
            tasks += [entry.delivery, *([entry.work] if entry.work else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- inside ------------------------------------------------------------------------------

    async def _offer_after(self, older: Entry, offer: Offer) -> None:
        assert older.work is not None
        await asyncio.wait({older.work}, timeout=offer.seconds_to_accept / 2)
        self.offer(offer, patient=False)

    def _objection(self, offer: Offer) -> str | None:
        config = self.tools.config
        if self.draining or self.leaving:
            return "This agent takes nothing new; it is draining."
        if config.worker_type is WorkerType.PROMPTER and not isinstance(offer.spec, DownloadSpec):
            return "This agent only answers chats (WORKER_TYPE=prompter)."
        working = self.working()
        if working:
            return f"This agent is busy with task {working.key.task_id}."
        return _no_room(offer.needs_vram, probe.room(self.tools.device))

    def _replace_older(self, key: TaskKey) -> None:
        for task_id, attempt in list(self._entries):
            if task_id == key.task_id and attempt < key.attempt:
                self.stale(TaskKey(task_id=task_id, attempt=attempt))

    def _begin(self, offer: Offer, key: TaskKey) -> None:
        courier = Courier(key, self.spool, self.transfer, self.session)
        journal = Journal(self.spool, key)
        courier.before_message = journal.flush
        attempt = Attempt(offer, self.tools, journal, courier, self.folder / _folder_name(key))
        delivery = asyncio.create_task(courier.run())
        entry = Entry(key, offer.name, courier, delivery, journal, attempt)
        delivery.add_done_callback(lambda _: self._delivery_ended(entry))
        entry.work = asyncio.create_task(self._work(entry, attempt))
        self._entries[_pair(key)] = entry
        self._side(self._live(entry, journal))
        self.on_begin()
        self.on_change()

    async def _work(self, entry: Entry, attempt: Attempt) -> None:
        await self.spool.call(Spool.begin, entry.key, entry.name)
        crash.point("offer.noted")
        await self.session.send(Accepted(**entry.key.model_dump()))
        crash.point("offer.accepted")
        try:
            await attempt.run()
        except Exception as error:
            log.exception("Task %d broke in the agent.", entry.key.task_id)
            await entry.courier.result("failed", time.time(), failure=_own_failure(error))

    async def _live(self, entry: Entry, journal: Journal) -> None:
        async with journal:
            assert entry.work is not None
            await asyncio.gather(entry.work, return_exceptions=True)
            self.on_change()
            if entry.attempt and entry.attempt.stopped is Stop.STALE:
                entry.delivery.cancel()
            await asyncio.wait({entry.delivery})
        await self._clear(entry)

    async def _clear(self, entry: Entry) -> None:
        """The attempt has said its last word, or has none; nothing of it stays on this disk."""
        stale = await self._delivered(entry)
        if stale:
            log.warning("Task %d belongs to another attempt now.", entry.key.task_id)
            await self.spool.call(Spool.forget, entry.key)
        else:
            log.info("Task %d is told to the hub and cleared away.", entry.key.task_id)
        await asyncio.to_thread(remove_folder, self.folder / _folder_name(entry.key))
        self._entries.pop(_pair(entry.key), None)
        self.on_change()

    def _delivery_ended(self, entry: Entry) -> None:
        if entry.delivery.cancelled() or entry.delivery.exception() is None:
            return
        if entry.attempt and entry.working:
            entry.attempt.stop(Stop.STALE)

    async def _delivered(self, entry: Entry) -> bool:
        """True when the attempt turned out to be stale."""
        (outcome,) = await asyncio.gather(entry.delivery, return_exceptions=True)
        if isinstance(outcome, StaleAttempt | asyncio.CancelledError):
            return True
        if isinstance(outcome, Exception):
            log.error("Task %d could not be delivered.", entry.key.task_id, exc_info=outcome)
        return False

    async def _withdraw(self, entry: Entry) -> None:
        """Cancelled while its result was on the way: the result stays here."""
        waiting = await self.spool.call(Spool.deliveries, entry.key)
        results = [delivery for delivery in waiting if delivery.kind == "result"]
        for delivery in results:
            await self.spool.call(Spool.drop_delivery, delivery.id)
        if results:
            await entry.courier.result("cancelled", time.time())
            entry.courier.interrupt()

    def _resume_delivery(self, key: TaskKey) -> None:
        courier = Courier(key, self.spool, self.transfer, self.session)
        delivery = asyncio.create_task(courier.run())
        entry = Entry(key, "", courier, delivery)
        self._entries[_pair(key)] = entry
        self._side(self._clear(entry))

    def _sweep(self, kept: set[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for folder in self.folder.iterdir():
            if folder.name not in kept:
                remove_folder(folder)

    def _side(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(coroutine)
        self._side_jobs.add(task)
        task.add_done_callback(self._side_jobs.discard)


def _no_room(needed: int | None, room: tuple[int, int] | None) -> str | None:
    """What the hub believes of the GPU's memory is seconds old; this is what counts."""
    if needed is None or room is None or needed <= room[0]:
        return None
    free, total, least = (f"{size / 2**30:.1f}" for size in (*room, needed))
    return f"Other programs leave {free} of its GPU's {total} GiB; the job needs at least {least}."


def _own_failure(error: Exception) -> Failure:
    """What broke in the agent itself; a full disk has a name, and another agent may have room."""
    failure = classify(error)
    if failure.reason is FailureReason.INTERNAL:
        message = "The agent itself failed at this task; its log has the details."
        failure = failure.model_copy(update={"message": message})
    return failure


def _pair(key: TaskKey) -> tuple[int, int]:
    return key.task_id, key.attempt


def _folder_name(key: TaskKey) -> str:
    return f"{key.task_id}-{key.attempt}"
