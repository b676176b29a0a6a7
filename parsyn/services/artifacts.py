"""Files that jobs leave."""

from __future__ import annotations

from typing import Any

from parsyn.errors import not_found
from parsyn.services import jobs
from parsyn.services.principal import Principal
from parsyn.store.jobs import Artifact
from parsyn.wire.states import JobKind


def list_page(
    who: Principal, job_id: int, kind: JobKind, limit: int, offset: int
) -> dict[str, Any]:
    """One page of a job's files, in order of their paths."""
    jobs.find(who, job_id, kind)
    query = Artifact.select().where(Artifact.job == job_id)
    rows = query.order_by(Artifact.kind, Artifact.path).limit(limit).offset(offset)
    return {"items": list(rows), "total": query.count()}


def find(who: Principal, job_id: int, kind: JobKind, artifact_id: int) -> Artifact:
    """One file of a job that `who` may see. Raises 404."""
    jobs.find(who, job_id, kind)
    row = Artifact.get_or_none((Artifact.id == artifact_id) & (Artifact.job == job_id))
    if row is None:
        raise not_found("file of this job")
    return row
