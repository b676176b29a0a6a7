"""When a worker counts as gone, and what becomes of its task.

Silence of `offline_seconds` makes a worker offline and its task unreachable; after a further
`unreachable_seconds` the task goes back to the queue as the next attempt.
"""

from __future__ import annotations

import peewee

from parsyn.services import history, job_shapes, jobs, signals, tasks, workers
from parsyn.services.context import Context
from parsyn.store.jobs import Task
from parsyn.store.workers import Worker
from parsyn.wire.states import TaskStatus, WorkerEventKind, WorkerStatus
from parsyn.wire.worker import CloseCode

STOP_SECONDS = 120.0
"""How long an agent has to say that it stopped, before its job counts as cancelled anyway."""


def expire(context: Context, at: float) -> None:
    """Everything whose time has come at `at`. Not to be called within the boot grace."""
    context.database.one_at_a_time("leases")
    _silent_workers(context, at)
    _unreachable(context, at)
    _lost(context, at)
    _never_stopped(context, at)


def _silent_workers(context: Context, at: float) -> None:
    limit = at - context.settings.number("leases.offline_seconds")
    silent = Worker.select().where(
        (Worker.status != WorkerStatus.OFFLINE) & _silent_since(limit) & Worker.deleted_at.is_null()
    )
    for worker in list(silent):
        set_offline(context, worker)
        signals.close_socket(context, worker.id, CloseCode.SILENT, "Nothing was heard for long.")


def set_offline(context: Context, worker: Worker) -> None:
    """The worker is gone as far as people see; its task's lease is another matter."""
    changed = (
        Worker.update(status=WorkerStatus.OFFLINE, connection=None)
        .where((Worker.id == worker.id) & (Worker.status != WorkerStatus.OFFLINE))
        .execute()
    )
    if changed:
        history.note(worker.id, WorkerEventKind.WENT, "Its connection is gone.")
        workers.moved(context, worker.id, WorkerStatus.OFFLINE, worker.status)
        signals.wake(context)


def _silent_since(limit: float) -> peewee.Expression:
    return Worker.last_seen_at.is_null() | (Worker.last_seen_at <= limit)


def _running_without(limit: float) -> peewee.Expression:
    gone = Worker.select(Worker.id).where(_silent_since(limit) | Worker.deleted_at.is_null(False))
    return (Task.status == TaskStatus.RUNNING) & (Task.worker.is_null() | Task.worker.in_(gone))


def _unreachable(context: Context, at: float) -> None:
    seconds = context.settings.number("leases.offline_seconds")
    window = context.settings.number("leases.unreachable_seconds")
    for task in list(
        Task.select().where(_running_without(at - seconds) & Task.unreachable_since.is_null())
    ):
        Task.update(unreachable_since=at).where(tasks.is_current(task.id, task.attempt)).execute()
        name = task.worker.name if task.worker else "Its worker"
        jobs.note(
            task.job_id, "unreachable",
            f"{name} has been silent for {seconds:.0f} s; it has {window:.0f} s more to come back.",
            attempt=task.attempt, worker_id=task.worker_id,
        )  # fmt: skip
        job_shapes.publish(context, task.job_id)


def _lost(context: Context, at: float) -> None:
    seconds = context.settings.number("leases.offline_seconds")
    window = context.settings.number("leases.unreachable_seconds")
    for task in list(
        Task.select().where(
            _running_without(at - seconds) & (Task.unreachable_since <= at - window)
        )
    ):
        name = task.worker.name if task.worker else "The worker"
        tasks.lose(context, task, f"{name} did not come back within {seconds + window:.0f} s.")


def _never_stopped(context: Context, at: float) -> None:
    for task in list(
        Task.select().where(
            (Task.status == TaskStatus.RUNNING) & (Task.cancel_requested_at <= at - STOP_SECONDS)
        )
    ):
        tasks.lose(context, task, "It did not stop in time.")


def seen_again(context: Context, worker_id: int) -> None:
    """The worker speaks: its running tasks are reachable."""
    for task in list(
        Task.select().where(
            (Task.worker == worker_id)
            & (Task.status == TaskStatus.RUNNING)
            & Task.unreachable_since.is_null(False)
        )
    ):
        Task.update(unreachable_since=None).where(tasks.is_current(task.id, task.attempt)).execute()
        jobs.note(
            task.job_id, "running", f"{task.worker.name} is back and went on meanwhile.",
            attempt=task.attempt, worker_id=worker_id,
        )  # fmt: skip
        job_shapes.publish(context, task.job_id)


def forgotten(context: Context, worker_id: int, task_id: int, attempt: int) -> None:
    """The agent is here but no longer knows the task that it took on."""
    task = Task.get_or_none(tasks.is_current(task_id, attempt) & (Task.worker == worker_id))
    if task is not None:
        tasks.lose(context, task, f"{task.worker.name} no longer has the task; it was restarted.")
