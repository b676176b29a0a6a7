"""Imports: a model of the Hugging Face Hub, looked up and fetched by an agent."""

from __future__ import annotations

from parsyn.services import tasks
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.wire.refs import ModelRef
from parsyn.wire.states import JobKind
from parsyn.wire.tasks import DownloadSpec


def create(context: Context, who: Principal, model: Model) -> Job:
    """Queue the fetching of a registered model with a `hub_id`; its `job_id` is set."""
    job = Job.create(
        user=who.user_id,
        project=model.project_id,
        kind=JobKind.IMPORT,
        name=f"Import of {model.name}"[:200],
        model=model,
    )
    ref = ModelRef(
        id=model.id,
        name=model.name,
        slug=model.slug,
        hub_id=model.hub_id,
        revision=model.revision,
    )
    Model.update(job_id=job.id).where(Model.id == model.id).execute()
    tasks.queue(context, job, DownloadSpec(model=ref), "Created.")
    return job
