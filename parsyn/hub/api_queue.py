"""The queue: what waits for a worker, in which order, and changing that."""

from __future__ import annotations

from typing import Any

from parsyn.hub.hub import hub, principal
from parsyn.hub.routing import Api, paging
from parsyn.services import queue
from parsyn.wire.api.queue import MoveIn, QueueOut, QueuePatch
from parsyn.wire.api.training import JobOut
from parsyn.wire.states import Scope

api = Api("queue")
ONE = "/queue/<int:job_id>"


@api.endpoint("GET", "/queue", scope=Scope.READ, answers=QueueOut)
async def get() -> dict[str, Any]:
    """Jobs of any kind that wait for a worker, in the order in which they are offered."""
    limit, offset = paging()
    context = hub().context
    return await context.database.read(queue.show, context, principal(), limit, offset)


@api.endpoint("POST", f"{ONE}/move", scope=Scope.WRITE, body=MoveIn, answers=JobOut)
async def move(job_id: int, body: MoveIn) -> dict[str, Any]:
    """Put a waiting job before or after another one of the same person."""
    context = hub().context
    return await context.database.write(queue.move, context, principal(), job_id, body)


@api.endpoint("PATCH", ONE, scope=Scope.WRITE, body=QueuePatch, answers=JobOut)
async def patch(job_id: int, body: QueuePatch) -> dict[str, Any]:
    """Let a waiting job go before or after those of another priority."""
    context = hub().context
    return await context.database.write(queue.set_priority, context, principal(), job_id, body)
