"""Checkpoints: real once their manifest matches what was stored; the newest good one counts."""

from __future__ import annotations

import logging
from typing import Any

from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.services import jobs, outbox
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.jobs import Checkpoint, Job, StoredObject, Task
from parsyn.wire.api.training import CheckpointOut
from parsyn.wire.events import EventType
from parsyn.wire.refs import CheckpointRef, FileRef
from parsyn.wire.states import JobKind
from parsyn.wire.worker import Checkpoint as Message

log = logging.getLogger(__name__)
KEPT = 3


def problem_with(task: Task, files: tuple[FileRef, ...]) -> str | None:
    """Why a manifest is not true: it must name objects of this attempt, as the hub saw them."""
    if len({file.key for file in files}) != len(files):
        return "It names a file twice."
    stored = {
        row.key: row
        for row in StoredObject.select().where(
            (StoredObject.task == task.id) & (StoredObject.attempt == task.attempt)
        )
    }
    for file in files:
        row = stored.get(file.key)
        if row is None:
            return f"It names {file.path}, which this attempt has not stored."
        if (row.size, row.sha256) != (file.size, file.sha256):
            return f"{file.path} was stored with another size or digest."
    return None


def apply(context: Context, task: Task, message: Message) -> None:
    """Keep a checkpoint, and let go of those beyond the job's `save_total_limit`."""
    problem = problem_with(task, message.files) if message.files else "It names no files."
    if problem:
        log.warning("checkpoint at step %d of task %d: %s", message.step, task.id, problem)
        return
    same = (Checkpoint.task == task.id) & (Checkpoint.attempt == task.attempt)
    if Checkpoint.select().where(same & (Checkpoint.step == message.step)).exists():
        return
    if message.best:
        Checkpoint.update(best=False).where(Checkpoint.job == task.job_id).execute()
    row = Checkpoint.create(
        job=task.job_id,
        task=task,
        attempt=task.attempt,
        step=message.step,
        epoch=message.epoch,
        metrics=message.metrics,
        best=message.best,
        files=[file.model_dump() for file in message.files],
        size=sum(file.size for file in message.files),
    )
    _prune(context, task.job)
    data = CheckpointOut.model_validate(row).model_dump(mode="json")
    context.publish(EventType.JOB_CHECKPOINT, f"job:{task.job_id}", data)


def _prune(context: Context, job: Job) -> None:
    limit = job.params.get("save_total_limit", KEPT)
    if not limit:
        return
    rows = list(
        Checkpoint.select()
        .where(Checkpoint.job == job.id)
        .order_by(Checkpoint.attempt.desc(), Checkpoint.step.desc())
    )
    for row in rows[limit:]:
        if not row.best:
            Checkpoint.delete().where(Checkpoint.id == row.id).execute()
            keys = [file["key"] for file in row.files]
            StoredObject.delete().where(StoredObject.key.in_(keys)).execute()
            outbox.delete_objects(context, keys)


def newest(context: Context, task: Task) -> CheckpointRef | None:
    """The newest checkpoint of a task whose every file is still there as it was stored.

    An attempt that a person started from an older checkpoint does not fall back to newer ones.
    """
    rows = (
        Checkpoint.select()
        .where(Checkpoint.task == task.id)
        .order_by(Checkpoint.attempt.desc(), Checkpoint.step.desc())
    )
    start = CheckpointRef.model_validate(task.resume) if task.resume else None
    for row in rows:
        passed_over = row.attempt < task.attempt and start is not None
        if passed_over and start and (row.attempt, row.step) > (start.attempt, start.step):
            continue
        if verifies(context, row):
            return as_ref(row)
        log.warning("checkpoint %d of task %d is damaged and not used", row.id, task.id)
    return None


def verifies(context: Context, row: Checkpoint) -> bool:
    """Sizes in the storage, and sizes and digests as the hub measured them at the upload."""
    files = [FileRef.model_validate(file) for file in row.files]
    stored = {
        s.key: (s.size, s.sha256)
        for s in StoredObject.select().where(StoredObject.key.in_([file.key for file in files]))
    }
    try:
        return all(
            stored.get(file.key) == (file.size, file.sha256)
            and context.storage.stat(file.key).size == file.size
            for file in files
        )
    except ParsynError as error:
        if error.code is not ErrorCode.NOT_FOUND:
            raise
        return False


def chosen(
    context: Context, job: Job, task: Task, checkpoint_id: int | None
) -> CheckpointRef | None:
    """The checkpoint that a person names, or the newest. Raises 422 for one that cannot be used."""
    if checkpoint_id is None:
        return newest(context, task)
    row = Checkpoint.get_or_none((Checkpoint.id == checkpoint_id) & (Checkpoint.job == job.id))
    if row is None:
        raise invalid(["checkpoint_id"], "There is no such checkpoint of this job.")
    if not verifies(context, row):
        raise invalid(["checkpoint_id"], "Files of this checkpoint are missing or damaged.")
    return as_ref(row)


def as_ref(row: Checkpoint) -> CheckpointRef:
    files = tuple(FileRef.model_validate(file) for file in row.files)
    return CheckpointRef(step=row.step, attempt=row.attempt, files=files)


def list_all(who: Principal, job_id: int) -> dict[str, Any]:
    """A training job's checkpoints, newest first."""
    jobs.find(who, job_id, JobKind.TRAINING)
    rows = list(
        Checkpoint.select()
        .where(Checkpoint.job == job_id)
        .order_by(Checkpoint.attempt.desc(), Checkpoint.step.desc())
    )
    return {"items": rows, "total": len(rows)}


def find(who: Principal, job_id: int, checkpoint_id: int) -> Checkpoint:
    """One checkpoint of a job that `who` may see. Raises 404."""
    jobs.find(who, job_id, JobKind.TRAINING)
    row = Checkpoint.get_or_none((Checkpoint.id == checkpoint_id) & (Checkpoint.job == job_id))
    if row is None:
        raise not_found("checkpoint")
    return row
