"""Evaluations of models, and the evaluators that can run them."""

from __future__ import annotations

from typing import Any

from parsyn.hub.hub import hub, principal
from parsyn.hub.job_reports import asked_statuses, events, logs
from parsyn.hub.queries import optional_id
from parsyn.hub.routing import Api, paging
from parsyn.services import evaluations, jobs, tasks
from parsyn.wire.api.base import Accepted, Page
from parsyn.wire.api.models import EvaluationIn, EvaluationOut, EvaluatorOut
from parsyn.wire.api.training import EventOut, LogsOut
from parsyn.wire.states import JobKind, Scope

api = Api("evaluations")
EVALUATION = JobKind.EVALUATION
ONE = "/evaluations/<int:job_id>"


@api.endpoint("GET", "/evaluators", scope=Scope.READ, answers=Page[EvaluatorOut])
async def evaluators() -> dict[str, Any]:
    """The installed evaluators, each with the JSON schema of its parameters."""
    items = [
        {
            "name": evaluator.name,
            "title": evaluator.title,
            "schema": evaluator.Params.model_json_schema(),
        }
        for evaluator in hub().context.plugins.evaluators.values()
    ]
    return {"items": items, "total": len(items)}


@api.endpoint(
    "POST",
    "/evaluations",
    scope=Scope.WRITE,
    body=EvaluationIn,
    answers=Accepted,
    status=202,
    idempotent=True,
)
async def create(body: EvaluationIn) -> dict[str, Any]:
    """Measure a model on a dataset."""
    context = hub().context
    return await context.database.write(evaluations.create, context, principal(), body)


@api.endpoint("GET", "/evaluations", scope=Scope.READ, answers=Page[EvaluationOut])
async def list_evaluations() -> dict[str, Any]:
    """Evaluations, newest first; `model_id`, `dataset_id` and `status` filter."""
    limit, offset = paging()
    return await hub().context.database.read(
        jobs.list_page,
        principal(),
        EVALUATION,
        limit,
        offset,
        statuses=asked_statuses(),
        model_id=optional_id("model_id"),
        dataset_id=optional_id("dataset_id"),
    )


@api.endpoint("GET", ONE, scope=Scope.READ, answers=EvaluationOut)
async def get(job_id: int) -> dict[str, Any]:
    """One evaluation."""
    return await hub().context.database.read(jobs.get, principal(), job_id, EVALUATION)


@api.endpoint("POST", f"{ONE}/cancel", scope=Scope.WRITE, answers=EvaluationOut)
async def cancel(job_id: int) -> dict[str, Any]:
    """Stop it."""
    context = hub().context
    return await context.database.write(tasks.cancel_job, context, principal(), job_id, EVALUATION)


@api.endpoint("DELETE", ONE, scope=Scope.WRITE)
async def delete(job_id: int) -> None:
    """Remove an evaluation that has ended."""
    context = hub().context
    await context.database.write(jobs.delete, context, principal(), job_id, EVALUATION)


@api.endpoint("GET", f"{ONE}/logs", scope=Scope.READ, answers=LogsOut)
async def get_logs(job_id: int) -> dict[str, Any]:
    """Log lines after the id `since`, in order."""
    return await logs(job_id, EVALUATION)


@api.endpoint("GET", f"{ONE}/events", scope=Scope.READ, answers=Page[EventOut])
async def get_events(job_id: int) -> dict[str, Any]:
    """Every transition with its cause."""
    return await events(job_id, EVALUATION)
