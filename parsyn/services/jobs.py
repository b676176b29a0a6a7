"""Jobs of any kind: finding them, moving them, and the line of their life."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import peewee

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, not_found
from parsyn.services import audit, job_shapes, outbox
from parsyn.services.context import Context
from parsyn.services.principal import Principal, require_role
from parsyn.store.jobs import Checkpoint, Job, JobEvent, StoredObject, Task
from parsyn.store.models import ModelFile
from parsyn.store.projects import visible
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.states import (
    JOB_TERMINAL,
    JOB_TRANSITIONS,
    JobKind,
    JobStatus,
    ProjectRole,
    sources_of,
)

NOUN = {
    JobKind.TRAINING: "training job",
    JobKind.EVALUATION: "evaluation",
    JobKind.EXPORT: "export",
    JobKind.IMPORT: "import",
}


def find(who: Principal, job_id: int, kind: JobKind, at_least: ProjectRole | None = None) -> Job:
    """A job of a kind that `who` may see. Raises 404, and 403 below the role `at_least`."""
    row = Job.get_or_none((Job.id == job_id) & (Job.kind == kind) & visible(Job, who.user_id))
    if row is None:
        raise not_found(NOUN[kind])
    if at_least is not None:
        require_role(who, row.project_id, at_least)
    return row


def get(who: Principal, job_id: int, kind: JobKind) -> dict[str, Any]:
    return job_shapes.as_out(find(who, job_id, kind))


def list_page(
    who: Principal,
    kind: JobKind,
    limit: int,
    offset: int,
    *,
    statuses: Sequence[JobStatus] = (),
    search: str = "",
    model_id: int | None = None,
    dataset_id: int | None = None,
    project_id: int | None = None,
) -> dict[str, Any]:
    """One page of a kind, newest first; no `statuses` are all of them."""
    query = Job.select().where((Job.kind == kind) & visible(Job, who.user_id))
    if statuses:
        query = query.where(Job.status.in_(list(statuses)))
    if search:
        query = query.where(Job.name.contains(search))
    for column, value in ((Job.model, model_id), (Job.dataset, dataset_id),
                          (Job.project, project_id)):  # fmt: skip
        if value is not None:
            query = query.where(column == value)
    rows = query.order_by(Job.id.desc()).limit(limit).offset(offset)
    return {"items": job_shapes.as_outs(rows), "total": query.count()}


# --- moving ----------------------------------------------------------------------------------


def move(
    context: Context,
    job_id: int,
    target: JobStatus,
    cause: str,
    *,
    attempt: int = 1,
    worker_id: int | None = None,
    **values: Any,
) -> dict[str, Any] | None:
    """One conditional UPDATE with its line in the timeline; None where that is not allowed now.

    Returns what the dashboards are told.
    """
    before = Job.by_id(job_id)
    if before is None:
        return None
    changed = (
        Job.update(status=target, **values)
        .where((Job.id == job_id) & Job.status.in_(sources_of(JOB_TRANSITIONS, target)))
        .execute()
    )
    if not changed:
        return None
    note(job_id, str(target), cause, attempt=attempt, worker_id=worker_id)
    told = job_shapes.publish(context, job_id)
    reason = (values.get("failure") or {}).get("reason")
    event = {"job_id": job_id, "kind": before.kind, "status": str(target),
             "previous": before.status, "reason": reason}  # fmt: skip
    outbox.hook(context, "job_changed", event)
    return told


def note(
    job_id: int, status: str, cause: str, *, attempt: int = 1, worker_id: int | None = None
) -> None:
    """One line of the timeline."""
    JobEvent.create(job=job_id, status=status, cause=cause, attempt=attempt, worker=worker_id)


def finish(context: Context, task: Task, target: JobStatus, cause: str, **values: Any) -> None:
    """Bring a task's job to its end."""
    move(
        context, task.job_id, target, cause, attempt=task.attempt, worker_id=task.worker_id,
        waiting=None, finished_at=now(), **values,
    )  # fmt: skip


def wrong_state(job: Job, wanted: str) -> ParsynError:
    """The 409 of a request that comes too early or too late."""
    return ParsynError(
        ErrorCode.INVALID_STATE, f"{job.name} is {job.status}; only {wanted} can do that."
    )


def events(who: Principal, job_id: int, kind: JobKind) -> dict[str, Any]:
    """The whole timeline, oldest first."""
    find(who, job_id, kind)
    rows = JobEvent.select().where(JobEvent.job == job_id).order_by(JobEvent.id)
    items = [
        {"id": row.id, "at": row.created_at, "attempt": row.attempt, "status": row.status,
         "cause": row.cause, "worker_id": row.worker_id}
        for row in rows
    ]  # fmt: skip
    return {"items": items, "total": len(items)}


def record(who: Principal, action: AuditAction, job: Job) -> None:
    """Write down what a person did with a job."""
    audit.record(who, action, f"job:{job.id}", job.project_id, name=job.name, kind=job.kind)


# --- deleting --------------------------------------------------------------------------------


def delete(context: Context, who: Principal, job_id: int, kind: JobKind) -> None:
    """Remove a job that has ended or never began, with its files; models made of it stay."""
    job = find(who, job_id, kind, ProjectRole.EDITOR)
    if job.status not in (*JOB_TERMINAL, JobStatus.PENDING):
        raise ParsynError(ErrorCode.INVALID_STATE, f"{job.name} is {job.status}; cancel it first.")
    record(who, AuditAction.JOB_DELETED, job)
    remove(context, job)


def remove(context: Context, job: Job) -> None:
    """Delete the row and what only it names."""
    outbox.delete_objects(context, unneeded_keys(job, everything=True))
    Job.delete().where(Job.id == job.id).execute()
    outbox.forget_metrics(context, job.id)


def sweep(context: Context, job: Job) -> None:
    """Let go of what earlier attempts stored and nothing names."""
    keys = sorted(unneeded_keys(job))
    for batch in peewee.chunked(keys, 500):
        StoredObject.delete().where(StoredObject.key.in_(batch)).execute()
    outbox.delete_objects(context, keys)


def unneeded_keys(job: Job, *, everything: bool = False) -> set[str]:
    """Stored objects of a job that no model names and (unless `everything`) no checkpoint or
    artifact of its own does."""
    stored = StoredObject.select(StoredObject.key).join(Task).where(Task.job == job.id)
    keys = {row.key for row in stored}
    if not everything:
        keys -= {row.key for row in job.artifacts}
        for checkpoint in Checkpoint.select(Checkpoint.files).where(Checkpoint.job == job.id):
            keys -= {file["key"] for file in checkpoint.files}
    for batch in peewee.chunked(sorted(keys), 500):
        keys -= {row.key for row in ModelFile.select(ModelFile.key).where(ModelFile.key.in_(batch))}
    return keys
