"""Exports of models to other formats, and the exporters that make them."""

from __future__ import annotations

from typing import Any

from quart import Response, request

from parsyn.errors import not_found
from parsyn.hub.archives import send_zip
from parsyn.hub.hub import hub, principal
from parsyn.hub.job_reports import asked_statuses, events, logs
from parsyn.hub.queries import optional_id
from parsyn.hub.routing import Api, paging
from parsyn.hub.streaming import send_object
from parsyn.services import exports, jobs, tasks
from parsyn.wire.api.base import Accepted, Page
from parsyn.wire.api.models import ExporterOut, ExportIn, ExportOut
from parsyn.wire.api.training import EventOut, LogsOut
from parsyn.wire.states import JobKind, Scope

api = Api("exports")
EXPORT = JobKind.EXPORT
ONE = "/exports/<int:job_id>"


@api.endpoint("GET", "/exporters", scope=Scope.READ, answers=Page[ExporterOut])
async def exporters() -> dict[str, Any]:
    """The installed exporters; with `model_id` each says whether it refuses that model."""
    context = hub().context
    items = await context.database.read(
        exports.exporters, context, principal(), optional_id("model_id")
    )
    return {"items": items, "total": len(items)}


@api.endpoint(
    "POST",
    "/models/<int:model_id>/export",
    scope=Scope.WRITE,
    body=ExportIn,
    answers=Accepted,
    status=202,
    idempotent=True,
)
async def create(model_id: int, body: ExportIn) -> dict[str, Any]:
    """Export a model to another format."""
    context = hub().context
    return await context.database.write(exports.create, context, principal(), model_id, body)


@api.endpoint("GET", "/models/<int:model_id>/exports", scope=Scope.READ, answers=Page[ExportOut])
async def of_model(model_id: int) -> dict[str, Any]:
    """The exports of a model, newest first."""
    limit, offset = paging()
    return await hub().context.database.read(exports.of_model, principal(), model_id, limit, offset)


@api.endpoint("GET", "/exports", scope=Scope.READ, answers=Page[ExportOut])
async def list_exports() -> dict[str, Any]:
    """Exports, newest first; `model_id` and `status` filter."""
    limit, offset = paging()
    return await hub().context.database.read(
        jobs.list_page,
        principal(),
        EXPORT,
        limit,
        offset,
        statuses=asked_statuses(),
        model_id=optional_id("model_id"),
    )


@api.endpoint("GET", ONE, scope=Scope.READ, answers=ExportOut)
async def get(job_id: int) -> dict[str, Any]:
    """One export."""
    return await hub().context.database.read(jobs.get, principal(), job_id, EXPORT)


@api.endpoint("POST", f"{ONE}/cancel", scope=Scope.WRITE, answers=ExportOut)
async def cancel(job_id: int) -> dict[str, Any]:
    """Stop it."""
    context = hub().context
    return await context.database.write(tasks.cancel_job, context, principal(), job_id, EXPORT)


@api.endpoint("POST", f"{ONE}/retry", scope=Scope.WRITE, answers=ExportOut, idempotent=True)
async def retry(job_id: int) -> dict[str, Any]:
    """Try a failed or cancelled export again."""
    context = hub().context
    return await context.database.write(exports.retry, context, principal(), job_id)


@api.endpoint("DELETE", ONE, scope=Scope.WRITE)
async def delete(job_id: int) -> None:
    """Remove an export that has ended, with its files."""
    context = hub().context
    await context.database.write(jobs.delete, context, principal(), job_id, EXPORT)


@api.endpoint("GET", f"{ONE}/download", scope=Scope.READ)
async def download(job_id: int) -> Response:
    """All of its files as one zip archive, or with `path` one of them."""
    context = hub().context
    job, files = await context.database.read(exports.files, principal(), job_id)
    path = request.args.get("path")
    if path is None:
        return send_zip(context.storage, job.name, files)
    file = next((file for file in files if file.path == path), None)
    if file is None:
        raise not_found("file in this export")
    return send_object(
        context.storage,
        file.key,
        file.size,
        mimetype="application/octet-stream",
        filename=path.rsplit("/", 1)[-1],
        etag=file.sha256,
    )


@api.endpoint("GET", f"{ONE}/logs", scope=Scope.READ, answers=LogsOut)
async def get_logs(job_id: int) -> dict[str, Any]:
    """Log lines after the id `since`, in order."""
    return await logs(job_id, EXPORT)


@api.endpoint("GET", f"{ONE}/events", scope=Scope.READ, answers=Page[EventOut])
async def get_events(job_id: int) -> dict[str, Any]:
    """Every transition with its cause."""
    return await events(job_id, EXPORT)
