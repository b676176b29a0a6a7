"""Training jobs: refused before they cost anything, then queued, resumed, repeated."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from parsyn.errors import ErrorCode, FieldError, ParsynError, invalid
from parsyn.services import checkpoints, ingredients, job_shapes, jobs, queue, tasks, training_parts
from parsyn.services.context import Context
from parsyn.services.datasets import dataset_ref
from parsyn.services.models import model_ref
from parsyn.services.principal import Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.training import ResumeIn, TrainingJobIn, TrainingJobPatch
from parsyn.wire.states import LEVELS, JobKind, JobStatus, ProjectRole
from parsyn.wire.tasks import TrainSpec

TRAINING = JobKind.TRAINING


def create(context: Context, who: Principal, body: TrainingJobIn) -> dict[str, Any]:
    """A pending job whose every part is there and fits. Raises 422 at the field that does not."""
    parts = training_parts.gather(context, who, body, body.dataset_id, body.model_id)
    parts.refuse()
    queue.require_priority(who, parts.project_id, body.priority)
    model, dataset = parts.model, parts.dataset
    assert model is not None
    assert dataset is not None
    request = body.model_dump(
        mode="json", include={"trainer", "preset", "export", "distributed", "worker_selection"}
    )
    job = Job.create(
        user=who.user_id,
        project=parts.project_id,
        kind=TRAINING,
        name=body.name or f"{model.name} on {dataset.name}"[:200],
        model=model,
        dataset=dataset,
        validation_dataset=parts.validation,
        request={**request, "config": parts.config},
        params=parts.params.model_dump(mode="json"),
        priority=LEVELS[body.priority],
    )
    jobs.note(job.id, "pending", "Created.")
    return job_shapes.publish(context, job.id)


def start(context: Context, who: Principal, job_id: int) -> dict[str, Any]:
    """Queue a pending job. Raises 409 otherwise, 422 where dataset or model are not ready."""
    job = jobs.find(who, job_id, TRAINING, ProjectRole.EDITOR)
    if job.status != JobStatus.PENDING:
        raise jobs.wrong_state(job, "a pending job")
    jobs.record(who, AuditAction.JOB_STARTED, job)
    return _queue(context, job, "Started.")


def _queue(context: Context, job: Job, cause: str) -> dict[str, Any]:
    _ask_plugins(context, job)
    return tasks.queue(context, job, spec_of(context, job), cause)


def _ask_plugins(context: Context, job: Job) -> None:
    asked = {"job_id": job.id, "kind": job.kind, "user_id": job.user_id,
             "project_id": job.project_id, "params": job.params}  # fmt: skip
    refusal = context.plugins.pluggy.hook.may_start_job(job=asked)
    if refusal:
        raise ParsynError(ErrorCode.FORBIDDEN, str(refusal))


def spec_of(context: Context, job: Job) -> TrainSpec:
    """What the agent gets. Raises 422 where something is gone or not ready (any more)."""
    trainer = ingredients.plugin(context.plugins.trainers, job.request["trainer"], "trainer")
    job.dataset, job.model = Dataset.by_id(job.dataset_id), Model.by_id(job.model_id)
    if job.dataset is None or job.model is None:
        gone = "dataset" if job.dataset is None else "model"
        raise invalid([f"{gone}_id"], f"The {gone} of this job was deleted.")
    ingredients.require_ready_model(job.model)
    ingredients.require_ready_dataset(job.dataset, trainer.accepts)
    validation = job.validation_dataset
    if validation is not None:
        ingredients.require_ready_dataset(validation, trainer.accepts, "validation_dataset_id")
    return TrainSpec(
        trainer=job.request["trainer"],
        params=job.params,
        model=model_ref(job.model),
        dataset=dataset_ref(job.dataset),
        validation=dataset_ref(validation) if validation is not None else None,
    )


def resume(context: Context, who: Principal, job_id: int, body: ResumeIn) -> dict[str, Any]:
    """Go on with what failed or was cancelled, from a checkpoint or the newest there is."""
    job = jobs.find(who, job_id, TRAINING, ProjectRole.EDITOR)
    if job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        raise jobs.wrong_state(job, "a failed or cancelled job")
    jobs.record(who, AuditAction.JOB_RESUMED, job)
    task = tasks.latest(job.id)
    if task is None:
        return _queue(context, job, "Started again.")
    _ask_plugins(context, job)
    ref = checkpoints.chosen(context, job, task, body.checkpoint_id)
    tasks.again(context, task, "Resumed.", ref, first_attempt=task.attempt + 1)
    return jobs.get(who, job_id, TRAINING)


def duplicate(
    context: Context, who: Principal, job_id: int, changes: dict[str, Any]
) -> dict[str, Any]:
    """A new pending job with the same request but for `changes`; `config` is merged by key."""
    job = jobs.find(who, job_id, TRAINING)
    request: dict[str, Any] = job.request
    given = {
        **{key: request[key] for key in ("trainer", "export", "worker_selection", "distributed")},
        "name": f"{job.name} (copy)"[:200],
        "dataset_id": job.dataset_id,
        "model_id": job.model_id,
        "validation_dataset_id": job.validation_dataset_id,
        "project_id": job.project_id,
        **changes,
        "config": _merged(request["config"], changes.get("config", {})),
    }
    try:
        body = TrainingJobIn.model_validate(given)
    except ValidationError as error:
        raise _at_changes(error) from None
    return create(context, who, body)


def _merged(config: dict[str, Any], changes: Any) -> Any:
    if not isinstance(changes, dict):
        return changes
    merged = {**config, **changes}
    # A null takes a setting back to its default.
    return {key: value for key, value in merged.items() if value is not None}


def _at_changes(error: ValidationError) -> ParsynError:
    fields = [
        FieldError(("changes", *item["loc"]), item["msg"].removeprefix("Value error, "))
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return ParsynError(ErrorCode.VALIDATION_FAILED, fields[0].msg, errors=fields)


def patch(context: Context, who: Principal, job_id: int, body: TrainingJobPatch) -> dict[str, Any]:
    """Rename."""
    jobs.find(who, job_id, TRAINING, ProjectRole.EDITOR)
    if body.name is not None:
        Job.update(name=body.name).where(Job.id == job_id).execute()
        job_shapes.publish(context, job_id)
    return jobs.get(who, job_id, TRAINING)
