"""Workers: what is known of them, who may change them, and what they are doing."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import peewee

from parsyn.clock import now
from parsyn.errors import not_found
from parsyn.services import audit, availability, outbox, signals
from parsyn.services.accounts import digest
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for, require_role
from parsyn.store.jobs import Job, Task
from parsyn.store.projects import ProjectMember, visible
from parsyn.store.workers import Worker
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.workers import WorkerIn, WorkerOut
from parsyn.wire.events import EventType
from parsyn.wire.states import ProjectRole, TaskKind, TaskStatus, WorkerStatus, WorkerType
from parsyn.wire.worker import CloseCode

KEY_REPLACED = "This agent's key was replaced."
WORKING = (TaskStatus.OFFERED, TaskStatus.RUNNING)
UNNAMED = "A job of another project"


def fleet_topic(project_id: int) -> str:
    """Where events of a project's workers go; a dashboard's `fleet` is those of its projects."""
    return f"fleet:{project_id}"


# --- reading ---------------------------------------------------------------------------------


def find(who: Principal, worker_id: int, at_least: ProjectRole | None = None) -> Worker:
    """A worker that `who` may see. Raises 404, and 403 below the role `at_least`."""
    row = Worker.get_or_none((Worker.id == worker_id) & of_user(who))
    if row is None:
        raise not_found("worker")
    if at_least is not None:
        require_role(who, row.project_id, at_least)
    return row


def get(who: Principal, worker_id: int) -> dict[str, Any]:
    return as_outs([find(who, worker_id)], who)[0]


def of_user(who: Principal) -> peewee.Expression:
    """The condition of the workers that `who` may see: their projects', and the house's."""
    seen = visible(Worker, who.user_id) | (Worker.kind == "managed")
    return Worker.deleted_at.is_null() & seen


def every_id() -> list[int]:
    """Of every worker there ever was, for housekeeping."""
    return [row.id for row in Worker.select(Worker.id)]


def list_page(
    who: Principal, limit: int, offset: int, status: str = "", search: str = ""
) -> dict[str, Any]:
    """One page, in order of names; `status` filters by the derived status."""
    query = Worker.select().where(of_user(who))
    if search:
        query = query.where(Worker.name.contains(search))
    rows = list(query.order_by(peewee.fn.LOWER(Worker.name), Worker.id))
    if not status:
        return {"items": as_outs(rows[offset : offset + limit], who), "total": len(rows)}
    items = [item for item in as_outs(rows, who) if item["status"] == status]
    return {"items": items[offset : offset + limit], "total": len(items)}


def summary(who: Principal) -> dict[str, Any]:
    """Counts by status, and the mean GPU utilisation of the online workers that report one."""
    rows = as_outs(Worker.select().where(of_user(who)), who)
    statuses = [row["status"] for row in rows]
    usage = [
        row["metrics"]["gpu_utilization"]
        for row in rows
        if row["status"] != WorkerStatus.OFFLINE
        and row["metrics"]
        and row["metrics"].get("gpu_utilization") is not None
    ]
    return {
        "total": len(rows),
        "online": sum(status != WorkerStatus.OFFLINE for status in statuses),
        "training": statuses.count(WorkerStatus.TRAINING),
        "idle": statuses.count(WorkerStatus.IDLE),
        "avg_gpu_utilization": sum(usage) / len(usage) if usage else None,
    }


def as_out(worker: Worker) -> dict[str, Any]:
    return as_outs([worker])[0]


def as_outs(workers: Iterable[Worker], who: Principal | None = None) -> list[dict[str, Any]]:
    """`WorkerOut`s, with what each is doing; a few queries however many there are.

    A job that `who` may not see is not named; without `who`, one of another project than the
    worker's.
    """
    rows = list(workers)
    work = working_on([row.id for row in rows])
    seen = _seen([task.job_id for task in work.values()], who) if who is not None else None
    return [_as_out(row, work.get(row.id), seen) for row in rows]


def _seen(job_ids: Sequence[int], who: Principal) -> set[int]:
    query = Job.select(Job.id).where(Job.id.in_(list(job_ids)) & visible(Job, who.user_id))
    return {row.id for row in query}


def working_on(worker_ids: Sequence[int]) -> dict[int, Task]:
    """The task (with its job) that each worker is offered or runs, as far as it is shown."""
    shown = (Task.id, Task.job, Task.kind, Task.status, Task.worker, Job.id, Job.kind, Job.name,
             Job.project, Job.progress)  # fmt: skip
    rows = (
        Task.select(*shown)
        .join(Job)
        .where(Task.worker.in_(list(worker_ids)) & Task.status.in_(WORKING))
        .order_by(Task.status, Task.id)
    )
    return {row.worker_id: row for row in rows}


def _as_out(row: Worker, task: Task | None, seen: set[int] | None) -> dict[str, Any]:
    status = status_of(row, task)
    named = task is not None and (
        task.job.project_id == row.project_id if seen is None else task.job_id in seen
    )
    held_back = availability.held_back(row, now()) if status != WorkerStatus.OFFLINE else None
    return {**row.__data__, "status": status, "current_job": _current_job(task, named),
            "limits": row.limits or {}, "unavailable": held_back,
            "user_id": row.user_id, "project_id": row.project_id}  # fmt: skip


def status_of(row: Worker, task: Task | None) -> WorkerStatus:
    """What a worker is doing: the first of these that holds."""
    if row.status == WorkerStatus.OFFLINE:
        return WorkerStatus.OFFLINE
    if row.draining:
        return WorkerStatus.DRAINING
    if row.paused:
        return WorkerStatus.PAUSED
    if task is not None and task.status == TaskStatus.RUNNING:
        return WorkerStatus.TRAINING if task.kind == TaskKind.TRAIN else WorkerStatus.BUSY
    return WorkerStatus.IDLE


def _current_job(task: Task | None, named: bool) -> dict[str, Any] | None:
    if task is None or task.status != TaskStatus.RUNNING:
        return None
    progress = task.job.progress
    return {
        "id": task.job_id if named else 0,
        "kind": task.job.kind,
        "name": task.job.name if named else UNNAMED,
        "percent": progress.get("percent"),
        "eta_seconds": progress.get("eta_seconds"),
    }


# --- changing --------------------------------------------------------------------------------


def create(context: Context, who: Principal, body: WorkerIn) -> dict[str, Any]:
    """Register by hand; the answer holds the key, which is shown once."""
    project_id = project_for(who, body.project_id)
    key = new_key()
    row = Worker.create(
        user=who.user_id,
        project=project_id,
        name=body.name,
        worker_type=body.worker_type,
        key_hash=digest(key),
    )
    audit.record(who, AuditAction.WORKER_MADE, f"worker:{row.id}", project_id, name=row.name)
    publish(context, row.id)
    return {"worker": get(who, row.id), "api_key": key}


def new_key() -> str:
    return f"wkr_{secrets.token_urlsafe(32)}"


def rotate_key(context: Context, who: Principal, worker_id: int) -> dict[str, Any]:
    """A new key; the old one stops working and its socket is closed."""
    row = find(who, worker_id, ProjectRole.ADMIN)
    key = new_key()
    Worker.update(key_hash=digest(key)).where(Worker.id == row.id).execute()
    audit.record(
        who, AuditAction.WORKER_KEY_REPLACED, f"worker:{row.id}", row.project_id, name=row.name
    )
    signals.close_socket(context, row.id, CloseCode.REVOKED, KEY_REPLACED)
    return {"worker": as_out(row), "api_key": key}


# --- events ----------------------------------------------------------------------------------


def publish(context: Context, worker_id: int) -> None:
    """Tell the dashboards what a worker is doing now."""
    row = Worker.by_id(worker_id)
    if row is not None and row.deleted_at is None:
        data = WorkerOut.model_validate(as_out(row)).model_dump(mode="json")
        context.publish(EventType.WORKER_STATE, fleet_topic(row.project_id), data)


def publish_deleted(context: Context, row: Worker) -> None:
    data = {"id": row.id, "deleted": True}
    context.publish(EventType.WORKER_STATE, fleet_topic(row.project_id), data)


def moved(context: Context, worker_id: int, status: WorkerStatus, previous: str) -> None:
    """Publish, and tell the plugins that listen."""
    publish(context, worker_id)
    outbox.hook(
        context, "worker_changed",
        {"worker_id": worker_id, "status": str(status), "previous": str(previous)},
    )  # fmt: skip


def allowed_types(kind: str) -> tuple[WorkerType, ...]:
    """The worker types that take tasks of a kind; whoever only answers chats still downloads."""
    if kind == TaskKind.DOWNLOAD:
        return (WorkerType.BOTH, WorkerType.FINE_TUNER, WorkerType.PROMPTER)
    return (WorkerType.BOTH, WorkerType.FINE_TUNER)


def project_ids(user_id: int) -> list[int]:
    """The projects that a user may see."""
    rows = ProjectMember.select(ProjectMember.project).where(ProjectMember.user == user_id)
    return [row.project_id for row in rows]
