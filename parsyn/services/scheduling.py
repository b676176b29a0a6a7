"""Offers: the oldest queued task to the best free worker, one task a worker."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from parsyn.clock import now
from parsyn.services import job_shapes, jobs, placement, signals, tasks
from parsyn.services.context import Context
from parsyn.services.workers import working_on
from parsyn.store.jobs import Job, Task
from parsyn.store.workers import Worker
from parsyn.wire.states import TaskStatus
from parsyn.wire.tasks import TaskSpec
from parsyn.wire.worker import Offer

specs: TypeAdapter[TaskSpec] = TypeAdapter(TaskSpec)
QUEUED = Task.status == TaskStatus.QUEUED
EXPLAINED = 200
"""So many waiting tasks are told why; those behind them only get what is free."""


def dispatch(context: Context) -> int:
    """Offer every queued task that fits a free worker; returns how many were offered.

    Those that fit none get a sentence that says why.
    """
    context.database.one_at_a_time("dispatch")
    waiting = [row.id for row in Task.select(Task.id).where(QUEUED).order_by(Task.id)]
    if not waiting:
        return 0
    fleet = list(Worker.select().where(Worker.deleted_at.is_null()))
    work = working_on([worker.id for worker in fleet])
    connected = {worker.id for worker in fleet if worker.connection is not None}
    offered = 0
    for place, task_id in enumerate(waiting):
        if place >= EXPLAINED and connected <= set(work):
            break
        task = _task(task_id)
        found = placement.place(task.job, task, fleet, work)
        if found.free and _offer(context, task, found):
            work[found.free[0].id] = task
            offered += 1
        elif not found.free:
            _wait(context, task, placement.waiting(found, task))
    return offered


def _task(task_id: int) -> Task:
    task = Task.by_id(task_id)
    assert task is not None
    task.job = Job.by_id(task.job_id)
    return task


def _offer(context: Context, task: Task, found: placement.Placement) -> bool:
    worker = found.free[0]
    moved = tasks.move(
        task.id, task.attempt, TaskStatus.OFFERED, worker=worker.id, offered_at=now()
    )
    if not moved:
        return False
    task.status, task.worker = TaskStatus.OFFERED, worker
    job = task.job
    Job.update(placement=found.as_record(), waiting=None).where(Job.id == job.id).execute()
    jobs.note(job.id, "offered", f"Offered to {worker.name}.", attempt=task.attempt,
              worker_id=worker.id)  # fmt: skip
    spec: dict[str, Any] = {**task.spec, "resume": task.resume} if task.resume else task.spec
    offer = Offer(
        task_id=task.id,
        attempt=task.attempt,
        job_id=job.id,
        name=job.name,
        spec=specs.validate_python(spec),
        seconds_to_accept=context.settings.number("leases.offer_seconds"),
    )
    signals.tell(context, worker.id, offer)
    return True


def _wait(context: Context, task: Task, sentence: str) -> None:
    if task.job.waiting == sentence:
        return
    changed = (
        Job.update(waiting=sentence)
        .where((Job.id == task.job_id) & (Job.waiting.is_null() | (Job.waiting != sentence)))
        .execute()
    )
    if changed:
        job_shapes.publish(context, task.job_id)


def expire_offers(context: Context, at: float) -> int:
    """Take back what was offered too long ago; the next best worker gets it."""
    limit = at - context.settings.number("leases.offer_seconds")
    late = list(
        Task.select().where((Task.status == TaskStatus.OFFERED) & (Task.offered_at <= limit))
    )
    for task in late:
        tasks.withdraw(context, task, "It did not answer in time.")
    return len(late)
