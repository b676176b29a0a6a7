"""What the people of a project tell a worker: its name, its limits, to pause, to measure itself."""

from __future__ import annotations

from typing import Any

from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.services import audit, history, signals, workers
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.projects import role_on
from parsyn.store.workers import Worker
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.workers import WorkerLimits, WorkerPatch
from parsyn.wire.states import ProjectRole, WorkerEventKind
from parsyn.wire.worker import Drain, Limits, Measure


def patch(context: Context, who: Principal, worker_id: int, body: WorkerPatch) -> dict[str, Any]:
    """Rename, change what it is used for, or (as an admin of its project) its limits."""
    limited = body.limits is not None
    row = workers.find(who, worker_id, ProjectRole.ADMIN if limited else ProjectRole.EDITOR)
    changes = body.model_dump(exclude_none=True, exclude={"limits"})
    if body.limits is not None and body.limits.model_dump() != _limits_of(row):
        _require_projects(who, body.limits)
        changes["limits"] = body.limits.model_dump(mode="json")
        signals.tell(context, worker_id, Limits(vram_cap=body.limits.vram_cap))
        _changed(worker_id, "Its limits were changed.")
    if changes:
        Worker.update(**changes).where(Worker.id == worker_id).execute()
        _record(who, AuditAction.WORKER_CHANGED, row, **changes)
        _tell(context, worker_id)
    return workers.get(who, worker_id)


def _limits_of(row: Worker) -> dict[str, Any]:
    return WorkerLimits.model_validate(row.limits or {}).model_dump()


def _require_projects(who: Principal, limits: WorkerLimits) -> None:
    for place, project_id in enumerate(limits.projects or ()):
        if role_on(project_id, who.user_id) is None:
            raise invalid(["limits", "projects", place], "There is no such project.")


def set_paused(context: Context, who: Principal, worker_id: int, paused: bool) -> dict[str, Any]:
    """A paused worker finishes what it runs and is offered nothing new."""
    row = workers.find(who, worker_id, ProjectRole.EDITOR)
    if row.paused != paused:
        Worker.update(paused=paused).where(Worker.id == worker_id).execute()
        _changed(worker_id, "It was paused." if paused else "It was resumed.")
        _record(who, AuditAction.WORKER_PAUSED if paused else AuditAction.WORKER_RESUMED, row)
    _tell(context, worker_id)
    return workers.get(who, worker_id)


def set_draining(
    context: Context, who: Principal, worker_id: int, draining: bool
) -> dict[str, Any]:
    """As paused, and the agent is told, so that it refuses by itself."""
    row = workers.find(who, worker_id, ProjectRole.EDITOR)
    if row.draining != draining:
        Worker.update(draining=draining).where(Worker.id == worker_id).execute()
        _changed(worker_id, "It is to drain." if draining else "It was resumed.")
        _record(who, AuditAction.WORKER_DRAINED if draining else AuditAction.WORKER_RESUMED, row)
    signals.tell(context, worker_id, Drain(on=draining))
    _tell(context, worker_id)
    return workers.get(who, worker_id)


def resume(context: Context, who: Principal, worker_id: int) -> dict[str, Any]:
    """Take back a pause or a drain."""
    row = workers.find(who, worker_id, ProjectRole.EDITOR)
    if row.draining:
        set_draining(context, who, worker_id, False)
    return set_paused(context, who, worker_id, False)


def measure(context: Context, who: Principal, worker_id: int) -> dict[str, Any]:
    """Ask the agent for a fresh benchmark; it measures once nothing runs. Raises 409 offline."""
    row = workers.find(who, worker_id, ProjectRole.EDITOR)
    if row.connection is None:
        raise ParsynError(
            ErrorCode.INVALID_STATE, f"{row.name} is not connected; start it and ask again."
        )
    signals.tell(context, worker_id, Measure())
    return workers.get(who, worker_id)


def _record(who: Principal, action: AuditAction, row: Worker, **details: Any) -> None:
    told = {"name": row.name, **details}
    audit.record(who, action, f"worker:{row.id}", row.project_id, **told)


def _changed(worker_id: int, text: str) -> None:
    history.note(worker_id, WorkerEventKind.CHANGED, text)


def _tell(context: Context, worker_id: int) -> None:
    workers.publish(context, worker_id)
    signals.wake(context)
