"""Jobs as the HTTP contract and the dashboard events show them: one shape for both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parsyn.services.context import Context
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Artifact, Job, Task
from parsyn.store.models import Model
from parsyn.store.workers import Worker
from parsyn.wire.api.models import EvaluationOut, ExportOut
from parsyn.wire.api.training import JobOut, TrainingJobOut
from parsyn.wire.events import EventType
from parsyn.wire.states import JobKind, TaskStatus, priority_of


def as_out(job: Job) -> dict[str, Any]:
    return as_outs([job])[0]


def as_outs(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """What GET answers, for jobs of any kind; a handful of queries however many there are."""
    rows = list(jobs)
    tasks = _latest_tasks([row.id for row in rows])
    workers = _names(Worker, [task.worker_id for task in tasks.values()])
    models = _names(Model, [row.model_id for row in rows])
    datasets = _names(Dataset, [row.dataset_id for row in rows])
    files = _files([row.id for row in rows if row.kind == JobKind.EXPORT])
    found = []
    for row in rows:
        out = _base(row, tasks.get(row.id), workers)
        if row.kind == JobKind.TRAINING:
            out |= _training(row, tasks.get(row.id), models, datasets)
        elif row.kind == JobKind.EVALUATION:
            out |= _evaluation(row)
        elif row.kind == JobKind.EXPORT:
            out |= _export(row, files.get(row.id, []))
        found.append(out)
    return found


def as_event(job: Job) -> dict[str, Any]:
    """`as_out` in JSON: a JobOut with what its kind's own GET answers besides."""
    return as_events([job])[0]


def as_events(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    return [_as_json(out) for out in as_outs(jobs)]


def _as_json(out: dict[str, Any]) -> dict[str, Any]:
    kind = out["kind"]
    if kind == JobKind.TRAINING:
        return TrainingJobOut.model_validate(out).model_dump(mode="json")
    plain = JobOut.model_validate(out).model_dump(mode="json")
    if kind == JobKind.EVALUATION:
        plain |= EvaluationOut.model_validate(out).model_dump(mode="json")
    elif kind == JobKind.EXPORT:
        plain |= ExportOut.model_validate(out).model_dump(mode="json")
    return plain


def publish(context: Context, job_id: int) -> dict[str, Any]:
    """Tell the dashboards how a job stands, in the words that are returned."""
    row = Job.by_id(job_id)
    if row is None:
        return {}
    data = as_event(row)
    for topic in (f"job:{row.id}", f"project:{row.project_id}"):
        context.publish(EventType.JOB_STATE, topic, data)
        if row.kind == JobKind.EXPORT:
            plain = ExportOut.model_validate(data).model_dump(mode="json")
            context.publish(EventType.EXPORT_STATE, topic, plain)
    return data


# --- parts -----------------------------------------------------------------------------------


def _latest_tasks(job_ids: list[int]) -> dict[int, Task]:
    if not job_ids:
        return {}
    shown = (Task.id, Task.job, Task.attempt, Task.status, Task.worker, Task.unreachable_since)
    rows = Task.select(*shown).where(Task.job.in_(job_ids)).order_by(Task.id)
    return {row.job_id: row for row in rows}


def _names(table: Any, ids: Iterable[int | None]) -> dict[int, str]:
    wanted = {id for id in ids if id is not None}
    if not wanted:
        return {}
    return {row.id: row.name for row in table.select(table.id, table.name).where(
        table.id.in_(list(wanted)))}  # fmt: skip


def _files(job_ids: list[int]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    if job_ids:
        for row in Artifact.select().where(Artifact.job.in_(job_ids)).order_by(Artifact.path):
            item = {"path": row.path, "size": row.size, "sha256": row.sha256}
            found.setdefault(row.job_id, []).append(item)
    return found


def _base(row: Job, task: Task | None, workers: dict[int, str]) -> dict[str, Any]:
    holds = task is not None and task.status not in (TaskStatus.QUEUED, TaskStatus.OFFERED)
    worker_id = task.worker_id if task is not None and holds else None
    return {
        "id": row.id,
        "kind": row.kind,
        "name": row.name,
        "status": row.status,
        "attempt": task.attempt if task else 1,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "progress": row.progress,
        "failure": row.failure,
        "waiting": row.waiting,
        "priority": priority_of(row.priority),
        "worker_id": worker_id,
        "worker_name": workers.get(worker_id) if worker_id else None,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }


def _training(
    row: Job, task: Task | None, models: dict[int, str], datasets: dict[int, str]
) -> dict[str, Any]:
    request: dict[str, Any] = row.request
    return {
        # Ids of rows that were deleted since: 0 is the id of nothing.
        "dataset_id": row.dataset_id or 0,
        "dataset_name": datasets.get(row.dataset_id),
        "model_id": row.model_id or 0,
        "model_name": models.get(row.model_id),
        "validation_dataset_id": row.validation_dataset_id,
        "trainer": request["trainer"],
        "preset": request.get("preset"),
        "config": request["config"],
        "resolved_config": row.params,
        "export": request["export"],
        "worker_selection": request["worker_selection"],
        "metrics_latest": row.metrics_latest,
        "placement": {**row.placement, "waiting": row.waiting},
        "unreachable_since": task.unreachable_since if task else None,
        "result_model_id": row.result_model_id,
    }


def _evaluation(row: Job) -> dict[str, Any]:
    return {
        "model_id": row.model_id or 0,
        "dataset_id": row.dataset_id or 0,
        "evaluator": row.request["evaluator"],
        "params": row.params,
        "phase": row.progress.get("phase"),
        "percent": row.progress.get("percent"),
        "metrics": _facts(row).get("metrics"),
    }


def _export(row: Job, files: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "model_id": row.model_id or 0,
        "format": row.request["format"],
        "params": row.params,
        "phase": row.progress.get("phase"),
        "percent": row.progress.get("percent"),
        "files": files,
        "parity": _facts(row).get("parity"),
        "log_url": f"/api/v1/exports/{row.id}/logs",
    }


def _facts(row: Job) -> dict[str, Any]:
    return row.result or {}
