"""Exports: a model in another format, as a task of its own that can be tried again."""

from __future__ import annotations

import logging
from typing import Any

from parsyn.errors import ParsynError, invalid, not_found
from parsyn.services import ingredients, jobs, tasks
from parsyn.services.context import Context
from parsyn.services.models import model_ref
from parsyn.services.principal import Principal, require_role
from parsyn.store.jobs import Artifact, Job
from parsyn.store.models import Model
from parsyn.store.projects import visible
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.models import ExportIn
from parsyn.wire.states import JobKind, JobStatus, ProjectRole
from parsyn.wire.tasks import ExportSpec

log = logging.getLogger(__name__)
EXPORT = JobKind.EXPORT


def visible_model(who: Principal, model_id: int) -> Model:
    row = Model.get_or_none((Model.id == model_id) & visible(Model, who.user_id))
    if row is None:
        raise not_found("model")
    return row


def create(context: Context, who: Principal, model_id: int, body: ExportIn) -> dict[str, Any]:
    """A queued export. Raises 404 for the model, 422 for a format that cannot be made of it."""
    model = visible_model(who, model_id)
    require_role(who, model.project_id, ProjectRole.EDITOR)
    job = _create(context, who.user_id, model, body.format, body.params)
    jobs.record(who, AuditAction.JOB_STARTED, job)
    return jobs.get(who, job.id, EXPORT)


def _create(
    context: Context, user_id: int, model: Model, format: str, given: dict[str, Any]
) -> Job:
    exporter = ingredients.plugin(context.plugins.exporters, format, "format")
    ingredients.require_ready_model(model)
    parsed = exporter.parse(given)
    refusal = exporter.refuses(model.architecture, parsed)
    if refusal:
        raise invalid(["format"], refusal)
    params = parsed.model_dump(mode="json")
    job = Job.create(
        user=user_id,
        project=model.project_id,
        kind=EXPORT,
        name=f"{model.name} as {exporter.title}"[:200],
        model=model,
        request={"format": format},
        params=params,
    )
    spec = ExportSpec(exporter=format, params=params, model=model_ref(model))
    tasks.queue(context, job, spec, "Created.")
    return job


def queue_targets(context: Context, training: Job) -> None:
    """The formats that a training named follow it, each as its own job; one that cannot be made
    does not take back what was trained."""
    for format in training.request.get("export", []):
        try:
            _create(context, training.user_id, training.result_model, format, {})
        except ParsynError as error:
            log.warning("export of job %d to %s: %s", training.id, format, error.detail)
            jobs.note(training.id, "completed", f"It is not exported to {format}: {error.detail}")


def retry(context: Context, who: Principal, job_id: int) -> dict[str, Any]:
    """Once more from the beginning. Raises 409 unless it failed or was cancelled."""
    job = jobs.find(who, job_id, EXPORT, ProjectRole.EDITOR)
    task = tasks.latest(job.id)
    if job.status not in (JobStatus.FAILED, JobStatus.CANCELLED) or task is None:
        raise jobs.wrong_state(job, "a failed or cancelled export")
    jobs.record(who, AuditAction.JOB_RESUMED, job)
    tasks.again(context, task, "Tried again.", None, first_attempt=task.attempt + 1)
    return jobs.get(who, job_id, EXPORT)


def files(who: Principal, job_id: int) -> tuple[Job, list[Artifact]]:
    """A completed export and its files. Raises 409 before it is completed."""
    job = jobs.find(who, job_id, EXPORT)
    if job.status != JobStatus.COMPLETED:
        raise jobs.wrong_state(job, "a completed export")
    return job, list(job.artifacts.order_by(Artifact.path))


def of_model(who: Principal, model_id: int, limit: int, offset: int) -> dict[str, Any]:
    """The exports of a model, newest first."""
    visible_model(who, model_id)
    return jobs.list_page(who, EXPORT, limit, offset, model_id=model_id)


def exporters(context: Context, who: Principal, model_id: int | None) -> list[dict[str, Any]]:
    """The installed exporters; for a model each says whether it refuses that one."""
    model = visible_model(who, model_id) if model_id is not None else None
    return [
        {
            "name": exporter.name,
            "title": exporter.title,
            "schema": exporter.Params.model_json_schema(),
            "refuses": exporter.refuses(model.architecture, exporter.parse({})) if model else None,
        }
        for exporter in context.plugins.exporters.values()
    ]
