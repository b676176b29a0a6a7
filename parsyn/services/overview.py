"""What runs, what needs a person, and how much there is."""

from __future__ import annotations

from typing import Any

import peewee

from parsyn.clock import now
from parsyn.services import job_shapes
from parsyn.services.principal import Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Artifact, Job
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import visible
from parsyn.store.workers import Worker
from parsyn.wire.states import JobKind, JobStatus

MOST = 20
RECENT = 10
FAILURES_SHOWN_SECONDS = 7 * 86_400


def overview(who: Principal) -> dict[str, Any]:
    """As `OverviewOut` wants it, of everything that the user may see."""
    mine = Job.select().where(visible(Job, who.user_id))
    running = mine.where(Job.status == JobStatus.RUNNING).order_by(Job.started_at.desc())
    failed_lately = (Job.status == JobStatus.FAILED) & (
        Job.finished_at > now() - FAILURES_SHOWN_SECONDS
    )
    stuck = (Job.status == JobStatus.QUEUED) & Job.waiting.is_null(False)
    attention = mine.where(failed_lately | stuck).order_by(Job.id.desc())
    return {
        "running": job_shapes.as_outs(running.limit(MOST)),
        "needs_attention": job_shapes.as_outs(attention.limit(RECENT)),
        "recent_jobs": job_shapes.as_outs(mine.order_by(Job.id.desc()).limit(RECENT)),
        "storage_bytes": storage_bytes(who),
        "datasets": Dataset.select().where(visible(Dataset, who.user_id)).count(),
        "models": Model.select().where(visible(Model, who.user_id)).count(),
        "workers": Worker.select()
        .where(visible(Worker, who.user_id) & Worker.deleted_at.is_null())
        .count(),
    }


def storage_bytes(who: Principal) -> int:
    """Bytes of the user's datasets, models and exports in the storage."""
    datasets = Dataset.select(peewee.fn.SUM(Dataset.size)).where(visible(Dataset, who.user_id))
    models = (
        ModelFile.select(peewee.fn.SUM(ModelFile.size))
        .join(Model)
        .where(visible(Model, who.user_id))
    )
    exports = (
        Artifact.select(peewee.fn.SUM(Artifact.size))
        .join(Job)
        .where((Job.kind == JobKind.EXPORT) & visible(Job, who.user_id))
    )
    return sum(int(query.scalar() or 0) for query in (datasets, models, exports))
