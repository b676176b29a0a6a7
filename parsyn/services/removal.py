"""Removing a worker: its key, its socket, its work."""

from __future__ import annotations

from parsyn.clock import now
from parsyn.services import audit, signals, tasks, workers
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.workers import Worker
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.states import ProjectRole, TaskStatus, WorkerStatus
from parsyn.wire.worker import CloseCode


def remove(context: Context, who: Principal, worker_id: int) -> None:
    """Revoke the key and close the socket; what it ran goes to another worker at once."""
    worker = workers.find(who, worker_id, ProjectRole.ADMIN)
    held = tasks.of_worker(worker.id)
    Worker.update(deleted_at=now(), status=WorkerStatus.OFFLINE, connection=None).where(
        Worker.id == worker.id
    ).execute()
    for task in held:
        if task.status == TaskStatus.OFFERED:
            tasks.withdraw(context, task, "It was removed.")
        else:
            tasks.lose(context, task, f"{worker.name} was removed.")
    audit.record(
        who, AuditAction.WORKER_DELETED, f"worker:{worker.id}", worker.project_id, name=worker.name
    )
    workers.publish_deleted(context, worker)
    signals.close_socket(context, worker.id, CloseCode.REVOKED, f"{worker.name} was removed.")
