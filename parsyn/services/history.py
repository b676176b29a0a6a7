"""The history of a worker: when it came and went, what it refused and failed at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsyn.services import workers
from parsyn.services.principal import Principal
from parsyn.store.jobs import Job
from parsyn.store.projects import visible
from parsyn.store.workers import WorkerEvent
from parsyn.wire.states import WorkerEventKind

KEPT = 1000
PRUNED_EVERY = 100
TEXT_LIMIT = 500


def note(
    worker_id: int | None, kind: WorkerEventKind, text: str, job_id: int | None = None
) -> None:
    """Add a line; the oldest beyond the newest thousand go now and then."""
    if worker_id is None:
        return
    row = WorkerEvent.create(worker=worker_id, kind=kind, text=text[:TEXT_LIMIT], job_id=job_id)
    if row.id % PRUNED_EVERY == 0:
        _prune(worker_id)


def _prune(worker_id: int) -> None:
    mine = WorkerEvent.worker == worker_id
    newest = WorkerEvent.select(WorkerEvent.id).where(mine).order_by(WorkerEvent.id.desc())
    last = newest.offset(KEPT).limit(1).scalar()
    if last is not None:
        WorkerEvent.delete().where(mine & (WorkerEvent.id <= last)).execute()


def list_page(
    who: Principal, worker_id: int, limit: int, offset: int, kinds: Sequence[WorkerEventKind] = ()
) -> dict[str, Any]:
    """One page, newest first. The jobs of others are not named to those who may not see them."""
    workers.find(who, worker_id)
    query = WorkerEvent.select().where(WorkerEvent.worker == worker_id)
    if kinds:
        query = query.where(WorkerEvent.kind.in_(list(kinds)))
    rows = list(query.order_by(WorkerEvent.id.desc()).limit(limit).offset(offset))
    seen = _seen(who, [row.job_id for row in rows if row.job_id is not None])
    return {"items": [_as_out(row, seen) for row in rows], "total": query.count()}


def _seen(who: Principal, job_ids: Sequence[int]) -> set[int]:
    query = Job.select(Job.id).where(Job.id.in_(job_ids) & visible(Job, who.user_id))
    return {row.id for row in query}


HIDDEN = {
    WorkerEventKind.REFUSED: "It refused somebody else's job.",
    WorkerEventKind.FAILED: "Somebody else's job failed.",
}
"""What is told instead of the words about a job that one may not see."""


def _as_out(row: WorkerEvent, seen: set[int]) -> dict[str, Any]:
    kind = WorkerEventKind(row.kind)
    shown = row.job_id is None or row.job_id in seen
    return {
        "id": row.id,
        "at": row.created_at,
        "kind": kind,
        "text": row.text if shown else HIDDEN.get(kind, "It worked for somebody else."),
        "job_id": row.job_id if shown else None,
    }
