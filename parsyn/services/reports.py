"""What agents report of tasks, stored; whether an attempt may still report."""

from __future__ import annotations

from dataclasses import dataclass

from parsyn import crash
from parsyn.services import advance, checkpoints, results, tasks
from parsyn.services.advance import Advance
from parsyn.services.context import Context
from parsyn.store.jobs import Job, Task
from parsyn.wire.states import TaskStatus
from parsyn.wire.worker import Checkpoint, Result, TaskKey


@dataclass(frozen=True)
class Holding:
    """A task attempt that a worker may speak for, running or just ended."""

    job_id: int
    project_id: int
    running: bool


def holding(worker_id: int, key: TaskKey) -> Holding | None:
    """None: the attempt is stale, or never was this worker's."""
    task = (
        Task.select(Task, Job)
        .join(Job)
        .where(
            (Task.id == key.task_id) & (Task.attempt == key.attempt) & (Task.worker == worker_id)
        )
        .first()
    )
    if task is None:
        return None
    return Holding(task.job_id, task.job.project_id, task.status == TaskStatus.RUNNING)


def checkpoint(
    context: Context, worker_id: int, message: Checkpoint, so_far: Advance | None
) -> bool:
    """Apply a checkpoint in its turn; False where the attempt is stale."""
    task = tasks.find(message, worker_id)
    if task is None:
        return False
    if so_far is not None:
        advance.store_one(so_far)
    if task.status == TaskStatus.RUNNING and message.seq > task.applied_seq:
        checkpoints.apply(context, task, message)
        Task.update(applied_seq=message.seq).where(Task.id == task.id).execute()
        crash.point("manifest.checkpoint")
    return True


def result(
    context: Context, worker_id: int, message: Result, so_far: Advance | None
) -> results.Outcome:
    """Apply the last word of an attempt."""
    if so_far is not None:
        advance.store_one(so_far)
    outcome = results.apply(context, worker_id, message)
    crash.point("manifest.result")
    return outcome
