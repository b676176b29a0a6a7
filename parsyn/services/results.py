"""What a finished task leaves: applied once, and only from the attempt that owns the task."""

from __future__ import annotations

import hashlib
import json
import logging
from enum import StrEnum

from parsyn.clock import now
from parsyn.errors import ParsynError
from parsyn.services import checkpoints, exports, jobs, models, outbox, speeds, tasks
from parsyn.services.context import Context
from parsyn.store.jobs import Artifact, Job, Task
from parsyn.wire.states import (
    TASK_TERMINAL,
    FailureReason,
    JobKind,
    JobStatus,
    TaskStatus,
)
from parsyn.wire.tasks import Failure, Manifest
from parsyn.wire.worker import Result

log = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What became of a result. A `stale` one belongs to another attempt or worker."""

    APPLIED = "applied"
    REPEATED = "repeated"
    CONFLICT = "conflict"
    STALE = "stale"


def apply(context: Context, worker_id: int, result: Result) -> Outcome:
    """The terminal answer of an attempt. The same one again changes nothing; another one is
    refused and logged."""
    task = tasks.find(result, worker_id)
    if task is None:
        return Outcome.STALE
    if task.status == TaskStatus.OFFERED:
        # Its acceptance was lost with a connection.
        tasks.accept(context, worker_id, result)
        task = Task.get_by_id(task.id)
    answer = digest_of(result)
    if task.status in TASK_TERMINAL:
        if task.manifest_hash == answer:
            return Outcome.REPEATED
        log.warning("task %d: a second, different result was refused", task.id)
        return Outcome.CONFLICT
    if task.status != TaskStatus.RUNNING:
        return Outcome.STALE
    Task.update(manifest_hash=answer).where(Task.id == task.id).execute()
    _apply(context, task, result)
    return Outcome.APPLIED


def digest_of(result: Result) -> str:
    """Equal for equal answers: outcome, manifest and failure, not the time of sending."""
    said = result.model_dump(mode="json", include={"outcome", "manifest", "failure"})
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _apply(context: Context, task: Task, result: Result) -> None:
    if result.outcome == "cancelled" and task.cancel_requested_at is not None:
        tasks.cancelled(context, task, "Stopped, as was asked.")
    elif result.outcome == "completed":
        _complete(context, task, result.manifest or Manifest())
    else:
        tasks.fail(context, task, result.failure or _unexplained(result))


def _unexplained(result: Result) -> Failure:
    if result.outcome == "cancelled":
        return Failure(
            reason=FailureReason.PREEMPTED, message="The agent stopped the task by itself."
        )
    return Failure(reason=FailureReason.INTERNAL, message="The agent did not say why.")


def _complete(context: Context, task: Task, manifest: Manifest) -> None:
    problem = checkpoints.problem_with(task, manifest.files)
    if problem:
        message = f"The result is not what was stored. {problem}"
        tasks.fail(context, task, Failure(reason=FailureReason.INTERNAL, message=message))
        return
    try:
        with context.database.peewee.atomic():
            model_id = _keep(context, task.job, task, manifest)
    except ParsynError as error:
        failure = Failure(reason=FailureReason.USER_ERROR, message=error.detail)
        tasks.fail(context, task, failure)
        return
    tasks.move(
        task.id, task.attempt, TaskStatus.COMPLETED, finished_at=now(), unreachable_since=None,
        cancel_requested_at=None,
    )  # fmt: skip
    progress = {**task.job.progress, "percent": 100.0, "eta_seconds": 0.0, "phase": None}
    made = {"result_model": model_id} if model_id else {}
    jobs.finish(
        context, task, JobStatus.COMPLETED, "Completed.", result=manifest.facts,
        progress=progress, failure=None, **made,
    )  # fmt: skip
    speeds.keep(context, task, task.job, manifest)
    jobs.sweep(context, task.job)
    tasks.leave(context, task)
    if task.job.kind == JobKind.TRAINING:
        exports.queue_targets(context, Job.get_by_id(task.job_id))


def _keep(context: Context, job: Job, task: Task, manifest: Manifest) -> int | None:
    """Rows for what was made; the id of the model that a training made."""
    if job.kind == JobKind.IMPORT:
        models.fill_from_download(context, job, manifest)
        return None
    kind = "model" if job.kind == JobKind.TRAINING else str(job.kind)
    for file in manifest.files:
        row = Artifact.create(
            job=job, kind=kind, worker=task.worker_id, path=file.path, key=file.key,
            size=file.size, sha256=file.sha256,
        )  # fmt: skip
        event = {"job_id": job.id, "artifact_id": row.id, "kind": kind, "key": file.key,
                 "size": file.size, "sha256": file.sha256}  # fmt: skip
        outbox.hook(context, "artifact_stored", event)
    if job.kind == JobKind.TRAINING:
        return int(models.create_from_training(context, job, manifest).id)
    return None
