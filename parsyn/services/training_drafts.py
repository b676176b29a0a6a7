"""What would be said to a training job that is still being thought out. Stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from parsyn.services import ingredients, jobs, training_parts, workers
from parsyn.services.context import Context
from parsyn.services.placement import START_ONE, hardware_of, not_selected
from parsyn.services.principal import Principal
from parsyn.services.training_parts import Parts
from parsyn.store.workers import Worker
from parsyn.wire.api.training import TrainingDraftIn
from parsyn.wire.states import JobKind, ProjectRole, TaskKind, WorkerStatus

FEW_ROWS = 20
GIB = 1 << 30


def examine(context: Context, who: Principal, body: TrainingDraftIn) -> dict[str, Any]:
    """As `TrainingDraftOut` wants it. Raises 404, 403 for the project."""
    parts = training_parts.gather(context, who, body, body.dataset_id, body.model_id)
    estimate = _estimate(context, parts)
    fleet = list(Worker.select().where(workers.of_user(who)))
    selection = body.worker_selection.model_dump()
    return {
        "ok": not parts.errors,
        "errors": [error.as_dict() for error in parts.errors],
        "checks": [*_data_checks(parts, estimate), *_fleet_checks(fleet, selection, estimate)],
        "estimate": estimate,
        "resolved_config": parts.params.model_dump(mode="json") if parts.params else None,
    }


def preflight(context: Context, who: Principal, job_id: int) -> dict[str, Any]:
    """As `PreflightOut` wants it, of a job that is stored. Raises 404, 403."""
    job = jobs.find(who, job_id, JobKind.TRAINING, ProjectRole.EDITOR)
    asked = ("trainer", "config", "export", "distributed", "worker_selection")
    body = TrainingDraftIn.model_validate(
        {name: job.request[name] for name in asked if name in job.request}
        | {
            "dataset_id": job.dataset_id,
            "model_id": job.model_id,
            "validation_dataset_id": job.validation_dataset_id,
            "project_id": job.project_id,
        }
    )
    found = examine(context, who, body)
    gone = [name for name in ("dataset", "model") if getattr(job, f"{name}_id") is None]
    refused = [f"The {name} of this job was deleted." for name in gone]
    refused += [error["msg"] for error in found["errors"]]
    checks = [{"code": "refused", "level": "error", "message": one} for one in refused]
    return {
        "ok": not refused,
        "verdict": "red" if refused else "amber" if found["checks"] else "green",
        "checks": [*checks, *found["checks"]],
        "estimate": found["estimate"],
    }


def _estimate(context: Context, parts: Parts) -> dict[str, Any] | None:
    if parts.trainer is None or parts.params is None or parts.dataset is None:
        return None
    model = ingredients.facts_of(context, parts.model) if parts.model is not None else None
    data = ingredients.data_facts(parts.dataset, parts.validation is not None)
    found = parts.trainer.estimate(parts.params, model, data)
    return asdict(found) if found is not None else None


def _data_checks(parts: Parts, estimate: dict[str, Any] | None) -> list[dict[str, Any]]:
    if parts.dataset is None:
        return []
    found = []
    rows, name = parts.dataset.row_count or 0, parts.dataset.name
    if rows < FEW_ROWS:
        said = f"{name} has {rows} usable rows; a model learns little from so few."
        found.append(_warn("few_rows", said, name=name, rows=rows))
    limit = (estimate or {}).get("max_length")
    longest = ingredients.data_facts(parts.dataset, False).longest
    if limit and longest and longest > limit:
        said = f"The longest row has {longest} tokens and will be cut to {limit}."
        found.append(_warn("rows_cut", said, longest=longest, limit=limit))
    return found


def _fleet_checks(
    fleet: list[Worker], selection: dict[str, Any], estimate: dict[str, Any] | None
) -> list[dict[str, Any]]:
    able = workers.allowed_types(TaskKind.TRAIN)
    online = [
        one for one in fleet if one.worker_type in able and one.status != WorkerStatus.OFFLINE
    ]
    if not online:
        said = "No worker is online that can train: the job will wait in the queue."
        return [_warn("no_worker", said, START_ONE)]
    chosen = [one for one in online if not_selected(one, selection) is None]
    if not chosen:
        said = "No worker of those that you chose is online: the job will wait for one."
        return [_warn("none_selected", said)]
    return _memory_checks([hardware_of(one) for one in chosen], estimate)


def _memory_checks(
    chosen: list[Mapping[str, Any]], estimate: dict[str, Any] | None
) -> list[dict[str, Any]]:
    gpus = [one.get("vram_total") or 0 for one in chosen if one.get("gpu")]
    if not gpus:
        said = "Only processors are online for it: without a GPU it takes long."
        return [_warn("no_gpu", said)]
    needed, largest = (estimate or {}).get("memory_bytes") or 0, max(gpus)
    if needed <= largest:
        return []
    said = (
        f"It needs about {needed / GIB:.1f} GiB of GPU memory; the largest GPU that is online has "
        f"{largest / GIB:.1f} GiB."
    )
    advice = "Use qlora, a smaller model or shorter sequences."
    return [_warn("little_memory", said, advice, needed=needed, largest=largest)]


def _warn(
    code: str, message: str, advice: str | None = None, **params: str | int | float
) -> dict[str, Any]:
    return {"code": code, "level": "warn", "message": message, "advice": advice, "params": params}
