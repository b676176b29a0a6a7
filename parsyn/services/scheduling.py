"""Offers: the next queued task to the worker that is done with it first, one task a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import peewee
from pydantic import TypeAdapter

from parsyn.clock import now
from parsyn.services import job_shapes, jobs, queue, signals, tasks
from parsyn.services.context import Context
from parsyn.services.lookout import Lookout, Queued, queued
from parsyn.services.machines import Work
from parsyn.services.placement import Placement
from parsyn.store.jobs import Job, Task
from parsyn.wire.states import TaskStatus
from parsyn.wire.tasks import TaskSpec
from parsyn.wire.worker import Offer

specs: TypeAdapter[TaskSpec] = TypeAdapter(TaskSpec)
AT_A_TIME = 200
"""So many waiting tasks are read from the database at once."""
FIRST_WORDS = 5
"""So many tasks that have just come are told at once why they wait; the others a moment later."""


def dispatch(context: Context) -> int:
    """Offer every queued task that fits a free worker; returns how many were offered.

    New ones that fit none get a sentence that says why.
    """
    context.database.one_at_a_time("dispatch")
    order = queue.in_order()
    if not order:
        return 0
    look = Lookout(now())
    offered = 0
    untold: list[Queued] = []
    for place, row in enumerate(_in_batches(order)):
        if place >= AT_A_TIME and not look.any_free:
            break
        if look.any_free and look.best_for(row) is not None:
            offered += _offer(context, look, row)
        elif row.waiting is None:
            untold.append(row)
    for row in untold[:FIRST_WORDS]:
        say(context, row, look.why(row), look.place(row))
    return offered


def _in_batches(order: Sequence[queue.Waiting]) -> Iterator[Queued]:
    for batch in peewee.chunked(order, AT_A_TIME):
        ids = [row.task_id for row in batch]
        found = {row.task_id: row for row in queued(ids)}
        yield from (found[id] for id in ids if id in found)


def _offer(context: Context, look: Lookout, row: Queued) -> bool:
    found = look.place(row)
    machine = found.free[0].machine
    at = now()
    moved = tasks.move(
        row.task_id, row.attempt, TaskStatus.OFFERED, worker=machine.id, offered_at=at
    )
    if not moved:
        return False
    needs = row.wanted.needs
    record = found.as_record(needs, chosen=True)
    Job.update(placement=record, waiting=None).where(Job.id == row.job_id).execute()
    jobs.note(row.job_id, "offered", f"Offered to {machine.name}.", attempt=row.attempt,
              worker_id=machine.id)  # fmt: skip
    task = Task.by_id(row.task_id)
    assert task is not None
    spec: dict[str, Any] = {**task.spec, "resume": task.resume} if task.resume else task.spec
    offer = Offer(
        task_id=row.task_id,
        attempt=row.attempt,
        job_id=row.job_id,
        name=row.name,
        spec=specs.validate_python(spec),
        seconds_to_accept=context.settings.number("leases.offer_seconds"),
        needs_vram=needs.memory_bytes,
    )
    signals.tell(context, machine.id, offer)
    look.take(machine, given(row))
    return True


def given(row: Queued) -> Work:
    """What a machine is at that is offered the task."""
    return Work(row.task_id, TaskStatus.OFFERED, row.job_id, row.name, "{}")


def say(context: Context, row: Queued, sentence: str, found: Placement) -> None:
    """Store why a task waits and who was looked at, if it still waits; tell the dashboards."""
    record = found.as_record(row.wanted.needs, chosen=False)
    still = Task.select(Task.id).where(
        (Task.id == row.task_id)
        & (Task.attempt == row.attempt)
        & (Task.status == TaskStatus.QUEUED)
    )
    changed = (
        Job.update(waiting=sentence, placement=record)
        .where((Job.id == row.job_id) & peewee.fn.EXISTS(still))
        .execute()
    )
    if changed and row.waiting != sentence:
        job_shapes.publish(context, row.job_id)


def expire_offers(context: Context, at: float) -> int:
    """Take back what was offered too long ago; the next best worker gets it."""
    limit = at - context.settings.number("leases.offer_seconds")
    late = list(
        Task.select().where((Task.status == TaskStatus.OFFERED) & (Task.offered_at <= limit))
    )
    for task in late:
        tasks.withdraw(context, task, "It did not answer in time.")
    return len(late)


class Explainer:
    """Keeps the words on waiting jobs true; remembers what it has said, so that it says it once."""

    def __init__(self) -> None:
        self._said: dict[tuple[int, int], Any] = {}

    def look(self, context: Context) -> list[tuple[Queued, str, Placement]]:
        """What is new to say of the first two hundred; reads only."""
        order = queue.in_order()[:AT_A_TIME]
        if not order:
            self._said = {}
            return []
        look = Lookout(now())
        said, new = {}, []
        for row in _in_batches(order):
            best = look.best_for(row)
            if best is not None:
                look.take(best.machine, given(row))
                continue
            key = (row.task_id, row.attempt)
            said[key] = look.mark(row)
            if self._said.get(key) != said[key]:
                new.append((row, look.why(row), look.place(row)))
        self._said = said
        return new

    def tell(self, context: Context, new: Sequence[tuple[Queued, str, Placement]]) -> None:
        for row, sentence, found in new:
            say(context, row, sentence, found)
