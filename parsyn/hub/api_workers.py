"""Workers and the keys with which they enrol."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from parsyn.hub.hub import hub, principal
from parsyn.hub.queries import choice, choices, search_text
from parsyn.hub.routing import Api, integer, paging
from parsyn.services import enrollment, history, removal, worker_control, workers
from parsyn.wire.api.base import Page
from parsyn.wire.api.workers import (
    MasterKeyCreated,
    MasterKeyIn,
    MasterKeyOut,
    WorkerCreated,
    WorkerEventOut,
    WorkerIn,
    WorkerMetrics,
    WorkerOut,
    WorkerPatch,
    WorkersSummary,
)
from parsyn.wire.states import Scope, WorkerEventKind, WorkerStatus

api = Api("workers")
ONE = "/workers/<int:worker_id>"
HISTORY_POINTS = 720


@api.endpoint("GET", "/workers", scope=Scope.READ, answers=Page[WorkerOut])
async def list_workers() -> dict[str, Any]:
    """Workers by name; `status` and `search` filter."""
    limit, offset = paging()
    status = choice("status", list(WorkerStatus))
    return await hub().context.database.read(
        workers.list_page, principal(), limit, offset, status, search_text()
    )


@api.endpoint("GET", "/workers/summary", scope=Scope.READ, answers=WorkersSummary)
async def summary() -> dict[str, Any]:
    """Counts, and the mean GPU utilisation."""
    return await hub().context.database.read(workers.summary, principal())


@api.endpoint(
    "POST", "/workers", scope=Scope.WORKERS, body=WorkerIn, answers=WorkerCreated, status=201
)
async def create(body: WorkerIn) -> dict[str, Any]:
    """Register a worker by hand; its key is shown once."""
    context = hub().context
    return await context.database.write(workers.create, context, principal(), body)


@api.endpoint("GET", ONE, scope=Scope.READ, answers=WorkerOut)
async def get(worker_id: int) -> dict[str, Any]:
    """One worker."""
    return await hub().context.database.read(workers.get, principal(), worker_id)


@api.endpoint("GET", f"{ONE}/metrics", scope=Scope.READ, answers=Page[WorkerMetrics])
async def measurements(worker_id: int) -> dict[str, Any]:
    """What it measured of itself after `since` (seconds since the epoch), oldest first.

    Of a long time, points at even distances.
    """
    context = hub().context
    await context.database.read(workers.find, principal(), worker_id)
    since = integer("since", 0, 0, 2**40)
    rows = await asyncio.to_thread(context.metrics.machine, worker_id, since, HISTORY_POINTS)
    items = [json.loads(body) for _, body in rows]
    return {"items": items, "total": len(items)}


@api.endpoint(
    "GET",
    f"{ONE}/events",
    scope=Scope.READ,
    answers=Page[WorkerEventOut],
    query={"kind": "Only lines of these kinds, several with commas."},
)
async def events(worker_id: int) -> dict[str, Any]:
    """Its history, newest first: came, went, refused, failed, measured, changed."""
    limit, offset = paging()
    kinds = [WorkerEventKind(kind) for kind in choices("kind", list(WorkerEventKind))]
    return await hub().context.database.read(
        history.list_page, principal(), worker_id, limit, offset, kinds
    )


@api.endpoint("PATCH", ONE, scope=Scope.WORKERS, body=WorkerPatch, answers=WorkerOut)
async def patch(worker_id: int, body: WorkerPatch) -> dict[str, Any]:
    """Rename it, change what it is used for, or set its owner's limits."""
    context = hub().context
    return await context.database.write(worker_control.patch, context, principal(), worker_id, body)


@api.endpoint("DELETE", ONE, scope=Scope.WORKERS)
async def delete(worker_id: int) -> None:
    """Revoke its key, close its socket, and give its work to others."""
    context = hub().context
    await context.database.write(removal.remove, context, principal(), worker_id)


@api.endpoint("POST", f"{ONE}/rotate-key", scope=Scope.WORKERS, answers=WorkerCreated)
async def rotate_key(worker_id: int) -> dict[str, Any]:
    """A new key, shown once; the old one stops working."""
    context = hub().context
    return await context.database.write(workers.rotate_key, context, principal(), worker_id)


@api.endpoint("POST", f"{ONE}/pause", scope=Scope.WORKERS, answers=WorkerOut)
async def pause(worker_id: int) -> dict[str, Any]:
    """Offer it nothing new until it is resumed."""
    context = hub().context
    return await context.database.write(
        worker_control.set_paused, context, principal(), worker_id, True
    )


@api.endpoint("POST", f"{ONE}/resume", scope=Scope.WORKERS, answers=WorkerOut)
async def resume(worker_id: int) -> dict[str, Any]:
    """Take back a pause or a drain."""
    context = hub().context
    return await context.database.write(worker_control.resume, context, principal(), worker_id)


@api.endpoint("POST", f"{ONE}/drain", scope=Scope.WORKERS, answers=WorkerOut)
async def drain(worker_id: int) -> dict[str, Any]:
    """Let it finish what it runs and take nothing new."""
    context = hub().context
    return await context.database.write(
        worker_control.set_draining, context, principal(), worker_id, True
    )


@api.endpoint("POST", f"{ONE}/benchmark", scope=Scope.WORKERS, answers=WorkerOut, status=202)
async def benchmark(worker_id: int) -> dict[str, Any]:
    """Ask for a fresh benchmark, which is made once nothing runs there."""
    context = hub().context
    return await context.database.write(worker_control.measure, context, principal(), worker_id)


# --- enrolment keys --------------------------------------------------------------------------


@api.endpoint(
    "POST",
    "/master-keys",
    scope=Scope.WORKERS,
    body=MasterKeyIn,
    answers=MasterKeyCreated,
    status=201,
)
async def create_key(body: MasterKeyIn) -> dict[str, Any]:
    """An enrolment key, shown once."""
    return await hub().context.database.write(enrollment.create_key, principal(), body)


@api.endpoint("GET", "/master-keys", scope=Scope.WORKERS, answers=Page[MasterKeyOut])
async def list_keys() -> dict[str, Any]:
    """Enrolment keys, newest first."""
    limit, offset = paging()
    return await hub().context.database.read(enrollment.list_keys, principal(), limit, offset)


@api.endpoint("DELETE", "/master-keys/<int:key_id>", scope=Scope.WORKERS)
async def revoke_key(key_id: int) -> None:
    """Stop new enrolments with it; who is enrolled stays."""
    await hub().context.database.write(enrollment.revoke_key, principal(), key_id)
