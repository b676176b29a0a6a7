"""Tasks: what agents are offered. Every change is one conditional UPDATE, fenced by `attempt`."""

from __future__ import annotations

from typing import Any

import peewee

from parsyn.clock import now
from parsyn.services import (
    checkpoints,
    history,
    job_shapes,
    jobs,
    models,
    needs,
    signals,
    tally,
    workers,
)
from parsyn.services.context import Context
from parsyn.services.failures import advised
from parsyn.services.principal import Principal
from parsyn.services.tally import Counted
from parsyn.store.jobs import Job, Task
from parsyn.store.workers import Worker
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.refs import CheckpointRef
from parsyn.wire.states import (
    RETRIED_BY_ITSELF,
    TASK_TRANSITIONS,
    FailureReason,
    JobKind,
    JobStatus,
    ProjectRole,
    TaskStatus,
    WorkerEventKind,
    sources_of,
)
from parsyn.wire.tasks import Failure, TaskSpec
from parsyn.wire.worker import Cancel, TaskKey


def queue(context: Context, job: Job, spec: TaskSpec, cause: str) -> dict[str, Any]:
    """Give a job its task and put both in the queue; the job as GET answers it."""
    Task.create(
        job=job, kind=spec.kind, spec=spec.model_dump(mode="json"),
        needs=needs.of(context, job, spec).as_dict(),
    )  # fmt: skip
    told = jobs.move(context, job.id, JobStatus.QUEUED, cause)
    signals.wake(context)
    return told or {}


def move(task_id: int, attempt: int, target: TaskStatus, /, **values: Any) -> bool:
    """Move one attempt of a task; False where it is not that attempt's turn."""
    return bool(
        Task.update(status=target, **values)
        .where(
            (Task.id == task_id)
            & (Task.attempt == attempt)
            & Task.status.in_(sources_of(TASK_TRANSITIONS, target))
        )
        .execute()
    )


def find(key: TaskKey, worker_id: int) -> Task | None:
    """The task if this attempt of it is current and belongs to the worker, else None: stale."""
    task = Task.by_id(key.task_id)
    if task is None or (task.attempt, task.worker_id) != (key.attempt, worker_id):
        return None
    task.job, task.worker = Job.by_id(task.job_id), Worker.by_id(worker_id)
    return task


# --- answers to an offer ---------------------------------------------------------------------


def accept(context: Context, worker_id: int, key: TaskKey) -> Task | None:
    """The offered attempt runs now. None where the offer is no longer this worker's."""
    task = find(key, worker_id)
    if task is None or task.status == TaskStatus.QUEUED:
        return None
    if task.status != TaskStatus.OFFERED:
        return task if task.status == TaskStatus.RUNNING else None
    at = now()
    move(task.id, task.attempt, TaskStatus.RUNNING, started_at=at, unreachable_since=None)
    name = task.worker.name
    started = {} if task.job.started_at else {"started_at": at}
    jobs.move(
        context, task.job_id, JobStatus.RUNNING, f"{name} took it on.", attempt=task.attempt,
        worker_id=worker_id, waiting=None, failure=None, **started,
    )  # fmt: skip
    workers.publish(context, worker_id)
    task.status, task.started_at = TaskStatus.RUNNING, at
    return task


def refuse(context: Context, worker_id: int, key: TaskKey, reason: str) -> None:
    """The worker does not want it; it is not asked again for this attempt for a while."""
    task = find(key, worker_id)
    if task is not None and task.status == TaskStatus.OFFERED:
        withdraw(context, task, reason[:500])


def withdraw(context: Context, task: Task, reason: str, *, blamed: bool = True) -> None:
    """Take an offer back; a worker that is `blamed` is not asked again for a while."""
    refused = dict(task.refused_by)
    if blamed:
        refused[str(task.worker_id)] = {"at": now(), "reason": reason}
        history.note(task.worker_id, WorkerEventKind.REFUSED, reason, task.job_id)
    name = task.worker.name if task.worker else "The worker"
    taken_back = move(
        task.id, task.attempt, TaskStatus.QUEUED, worker=None, offered_at=None, refused_by=refused
    )
    if taken_back:
        tally.count(Counted.REFUSED)
        jobs.note(
            task.job_id, "queued", f"{name} did not take it: {reason}",
            attempt=task.attempt, worker_id=task.worker_id,
        )  # fmt: skip
        signals.wake(context)


# --- the end of an attempt -------------------------------------------------------------------


def requeue(context: Context, task: Task, cause: str, *, not_on: str | None = None) -> bool:
    """Back to the queue as the next attempt, from the newest checkpoint that verifies.

    `not_on` is a reason not to offer it to the same worker again.
    """
    refused = {}
    if not_on and task.worker_id:
        refused = {str(task.worker_id): {"at": now(), "reason": not_on}}
    return again(context, task, cause, checkpoints.newest(context, task), refused_by=refused)


def again(
    context: Context, task: Task, cause: str, resume: CheckpointRef | None, **values: Any
) -> bool:
    """The next attempt of a task, from `resume` or from the beginning."""
    fresh = {
        "attempt": task.attempt + 1,
        "worker": None,
        "resume": resume.model_dump(mode="json") if resume else None,
        "needs": {**task.needs, "done": _done(task.job, resume)},
        "refused_by": {},
        "applied_seq": 0,
        "offered_at": None,
        "started_at": None,
        "unreachable_since": None,
        "cancel_requested_at": None,
        "manifest_hash": None,
        "finished_at": None,
    }
    if not move(task.id, task.attempt, TaskStatus.QUEUED, **{**fresh, **values}):
        return False
    start = f"from the checkpoint at step {resume.step}" if resume else "from the beginning"
    jobs.move(
        context,
        task.job_id,
        JobStatus.QUEUED,
        f"{cause} It goes on {start}.",
        attempt=task.attempt + 1,
        worker_id=task.worker_id,
        finished_at=None,
        waiting=None,
        failure=None,
    )
    leave(context, task)
    signals.wake(context)
    return True


def _done(job: Job, resume: CheckpointRef | None) -> float:
    """The share of a run that a checkpoint holds, as far as its length is known."""
    total = job.progress.get("total_steps")
    return min(1.0, resume.step / total) if resume and total else 0.0


def fail(context: Context, task: Task, failure: Failure) -> None:
    """An attempt failed: once more where the infrastructure did it, else the job's end."""
    text = f"{failure.reason}: {failure.message}"
    history.note(task.worker_id, WorkerEventKind.FAILED, text, task.job_id)
    limit = context.settings.integer("leases.max_attempts")
    tries = task.attempt - task.first_attempt + 1
    if failure.reason in RETRIED_BY_ITSELF and tries < limit:
        not_on = "Its disk was full." if failure.reason == FailureReason.DISK_FULL else None
        if requeue(context, task, failure.message, not_on=not_on):
            tally.count(Counted.REQUEUED)
            return
    failure = advised(failure, tries, limit)
    if move(task.id, task.attempt, TaskStatus.FAILED, finished_at=now(), unreachable_since=None):
        jobs.finish(
            context, task, JobStatus.FAILED, failure.message,
            failure=failure.model_dump(mode="json"),
        )  # fmt: skip
        models.mark_failed(context, task.job, failure)
        leave(context, task)


def lose(context: Context, task: Task, message: str) -> None:
    """The worker is gone or no longer has the task; a stop that was asked for is done."""
    tally.count(Counted.LOST)
    if task.cancel_requested_at is not None:
        cancelled(context, task, "Stopped, as was asked.")
    else:
        fail(context, task, Failure(reason=FailureReason.WORKER_LOST, message=message))
    if task.worker_id is not None:
        cancel = Cancel(task_id=task.id, attempt=task.attempt, reason="stale")
        signals.tell(context, task.worker_id, cancel)


def cancelled(context: Context, task: Task, cause: str) -> bool:
    """The attempt has stopped because it was asked to."""
    if not move(
        task.id, task.attempt, TaskStatus.CANCELLED, finished_at=now(), unreachable_since=None
    ):
        return False
    jobs.finish(context, task, JobStatus.CANCELLED, cause)
    models.mark_failed(context, task.job, Failure(reason=FailureReason.CANCELLED, message=cause))
    leave(context, task)
    return True


def leave(context: Context, task: Task) -> None:
    """A worker has a free place again."""
    if task.worker_id is not None:
        workers.publish(context, task.worker_id)
        signals.wake(context)


# --- cancelling ------------------------------------------------------------------------------


def cancel_job(context: Context, who: Principal, job_id: int, kind: JobKind) -> dict[str, Any]:
    """Stop a job that `who` may change. Raises 404, 403, and 409 where it has ended."""
    job = jobs.find(who, job_id, kind, ProjectRole.EDITOR)
    cancel(context, job)
    jobs.record(who, AuditAction.JOB_CANCELLED, job)
    return jobs.get(who, job_id, kind)


def cancel(context: Context, job: Job) -> None:
    """Stop a job at whatever point it is; a running one ends when its agent says so.

    Raises 409 where it has ended.
    """
    if job.status == JobStatus.PENDING:
        jobs.move(context, job.id, JobStatus.CANCELLED, "Cancelled before it was started.",
                  finished_at=now())  # fmt: skip
        return
    task = latest(job.id)
    if task is None or job.status not in (JobStatus.QUEUED, JobStatus.RUNNING):
        raise jobs.wrong_state(job, "a pending, queued or running job")
    if task.status == TaskStatus.RUNNING and task.worker and task.worker.connection:
        _ask_to_stop(context, task)
    else:
        cancelled(context, task, "Cancelled.")
        if task.worker_id is not None:
            stop = Cancel(task_id=task.id, attempt=task.attempt, reason="stale")
            signals.tell(context, task.worker_id, stop)


def _ask_to_stop(context: Context, task: Task) -> None:
    asked = (
        Task.update(cancel_requested_at=now())
        .where((Task.id == task.id) & Task.cancel_requested_at.is_null())
        .execute()
    )
    if asked:
        name = task.worker.name
        Job.update(waiting=f"Waiting for {name} to stop.").where(Job.id == task.job_id).execute()
        jobs.note(task.job_id, "running", f"{name} was asked to stop.", attempt=task.attempt,
                  worker_id=task.worker_id)  # fmt: skip
        job_shapes.publish(context, task.job_id)
    signals.tell(context, task.worker_id, Cancel(task_id=task.id, attempt=task.attempt))


def latest(job_id: int) -> Task | None:
    """The task that speaks for a job."""
    return Task.select().where(Task.job == job_id).order_by(Task.id.desc()).first()


def of_worker(worker_id: int) -> list[Task]:
    """What a worker is offered or runs."""
    return list(
        Task.select(Task, Job)
        .join(Job)
        .where((Task.worker == worker_id) & Task.status.in_(workers.WORKING))
    )


def is_current(task_id: int, attempt: int) -> peewee.Expression:
    return (Task.id == task_id) & (Task.attempt == attempt) & (Task.status == TaskStatus.RUNNING)
