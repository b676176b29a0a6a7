"""Training jobs and the trainers that can run them."""

from __future__ import annotations

from typing import Any

from quart import Response

from parsyn.hub.hub import hub, principal
from parsyn.hub.job_reports import asked_statuses, events, logs, metrics, samples
from parsyn.hub.queries import optional_id, search_text
from parsyn.hub.routing import Api, paging
from parsyn.hub.streaming import send_object
from parsyn.services import artifacts, checkpoints, jobs, tasks, training, training_drafts
from parsyn.wire.api.base import Page
from parsyn.wire.api.training import (
    ArtifactOut,
    CheckpointOut,
    DuplicateIn,
    EventOut,
    LogsOut,
    MetricsOut,
    PreflightOut,
    ResumeIn,
    SampleOut,
    TrainerOut,
    TrainingDraftIn,
    TrainingDraftOut,
    TrainingJobIn,
    TrainingJobOut,
    TrainingJobPatch,
)
from parsyn.wire.states import JobKind, Scope

api = Api("training")
TRAINING = JobKind.TRAINING
ONE = "/training-jobs/<int:job_id>"


@api.endpoint("GET", "/trainers", scope=Scope.READ, answers=Page[TrainerOut])
async def trainers() -> dict[str, Any]:
    """The installed trainers, each with the JSON schema of its parameters."""
    items = [
        {
            "name": trainer.name,
            "title": trainer.title,
            "accepts": sorted(trainer.accepts),
            "schema": trainer.Params.model_json_schema(),
        }
        for trainer in hub().context.plugins.trainers.values()
    ]
    return {"items": items, "total": len(items)}


@api.endpoint(
    "POST",
    "/training-jobs",
    scope=Scope.WRITE,
    body=TrainingJobIn,
    answers=TrainingJobOut,
    status=201,
    idempotent=True,
)
async def create(body: TrainingJobIn) -> dict[str, Any]:
    """A pending job; everything that can be refused is refused here."""
    context = hub().context
    return await context.database.write(training.create, context, principal(), body)


@api.endpoint(
    "POST",
    "/training-jobs/validate",
    scope=Scope.READ,
    body=TrainingDraftIn,
    answers=TrainingDraftOut,
)
async def validate(body: TrainingDraftIn) -> dict[str, Any]:
    """What would be said to such a job, and what it comes to; nothing is stored."""
    context = hub().context
    return await context.database.read(training_drafts.examine, context, principal(), body)


@api.endpoint("GET", "/training-jobs", scope=Scope.READ, answers=Page[TrainingJobOut])
async def list_jobs() -> dict[str, Any]:
    """Training jobs, newest first; `status` (several with commas) and `search` filter."""
    limit, offset = paging()
    return await hub().context.database.read(
        jobs.list_page,
        principal(),
        TRAINING,
        limit,
        offset,
        statuses=asked_statuses(),
        search=search_text(),
        model_id=optional_id("model_id"),
        dataset_id=optional_id("dataset_id"),
        project_id=optional_id("project_id"),
    )


@api.endpoint("GET", ONE, scope=Scope.READ, answers=TrainingJobOut)
async def get(job_id: int) -> dict[str, Any]:
    """One training job."""
    return await hub().context.database.read(jobs.get, principal(), job_id, TRAINING)


@api.endpoint("PATCH", ONE, scope=Scope.WRITE, body=TrainingJobPatch, answers=TrainingJobOut)
async def patch(job_id: int, body: TrainingJobPatch) -> dict[str, Any]:
    """Rename it."""
    context = hub().context
    return await context.database.write(training.patch, context, principal(), job_id, body)


@api.endpoint("DELETE", ONE, scope=Scope.WRITE)
async def delete(job_id: int) -> None:
    """Remove a job that has ended or never began; models made of it stay."""
    context = hub().context
    await context.database.write(jobs.delete, context, principal(), job_id, TRAINING)


@api.endpoint("POST", f"{ONE}/preflight", scope=Scope.READ, answers=PreflightOut)
async def preflight(job_id: int) -> dict[str, Any]:
    """What would be said against it now, and what it comes to; no machine is asked."""
    context = hub().context
    return await context.database.read(training_drafts.preflight, context, principal(), job_id)


@api.endpoint("POST", f"{ONE}/start", scope=Scope.WRITE, answers=TrainingJobOut, idempotent=True)
async def start(job_id: int) -> dict[str, Any]:
    """Queue a pending job."""
    context = hub().context
    return await context.database.write(training.start, context, principal(), job_id)


@api.endpoint("POST", f"{ONE}/cancel", scope=Scope.WRITE, answers=TrainingJobOut)
async def cancel(job_id: int) -> dict[str, Any]:
    """Stop it wherever it is."""
    context = hub().context
    return await context.database.write(tasks.cancel_job, context, principal(), job_id, TRAINING)


@api.endpoint(
    "POST",
    f"{ONE}/resume",
    scope=Scope.WRITE,
    body=ResumeIn,
    answers=TrainingJobOut,
    idempotent=True,
)
async def resume(job_id: int, body: ResumeIn) -> dict[str, Any]:
    """Go on with a failed or cancelled job from a checkpoint."""
    context = hub().context
    return await context.database.write(training.resume, context, principal(), job_id, body)


@api.endpoint(
    "POST",
    f"{ONE}/duplicate",
    scope=Scope.WRITE,
    body=DuplicateIn,
    answers=TrainingJobOut,
    status=201,
    idempotent=True,
)
async def duplicate(job_id: int, body: DuplicateIn) -> dict[str, Any]:
    """A new pending job like this one, but for `changes`."""
    context = hub().context
    return await context.database.write(
        training.duplicate, context, principal(), job_id, body.changes
    )


# --- what it tells ---------------------------------------------------------------------------


@api.endpoint("GET", f"{ONE}/metrics", scope=Scope.READ, answers=MetricsOut)
async def get_metrics(job_id: int) -> dict[str, Any]:
    """Series by name; `names` (with commas) and `since_step` narrow them."""
    return await metrics(job_id, TRAINING)


@api.endpoint("GET", f"{ONE}/logs", scope=Scope.READ, answers=LogsOut)
async def get_logs(job_id: int) -> dict[str, Any]:
    """Log lines after the id `since`, in order."""
    return await logs(job_id, TRAINING)


@api.endpoint("GET", f"{ONE}/events", scope=Scope.READ, answers=Page[EventOut])
async def get_events(job_id: int) -> dict[str, Any]:
    """Every transition with its cause."""
    return await events(job_id, TRAINING)


@api.endpoint("GET", f"{ONE}/samples", scope=Scope.READ, answers=Page[SampleOut])
async def get_samples(job_id: int) -> dict[str, Any]:
    """Answers that the model gave during training."""
    return await samples(job_id, TRAINING)


@api.endpoint("GET", f"{ONE}/checkpoints", scope=Scope.READ, answers=Page[CheckpointOut])
async def get_checkpoints(job_id: int) -> dict[str, Any]:
    """Its checkpoints, newest first."""
    return await hub().context.database.read(checkpoints.list_all, principal(), job_id)


@api.endpoint("GET", f"{ONE}/artifacts", scope=Scope.READ, answers=Page[ArtifactOut])
async def get_artifacts(job_id: int) -> dict[str, Any]:
    """The files that it left."""
    limit, offset = paging()
    return await hub().context.database.read(
        artifacts.list_page, principal(), job_id, TRAINING, limit, offset
    )


@api.endpoint("GET", f"{ONE}/artifacts/<int:artifact_id>/download", scope=Scope.READ)
async def download_artifact(job_id: int, artifact_id: int) -> Response:
    """One file; `Range` is honoured."""
    context = hub().context
    row = await context.database.read(artifacts.find, principal(), job_id, TRAINING, artifact_id)
    return send_object(
        context.storage,
        row.key,
        row.size,
        mimetype="application/octet-stream",
        filename=row.path.rsplit("/", 1)[-1],
        etag=row.sha256,
    )
