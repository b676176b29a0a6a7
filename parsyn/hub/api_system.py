"""Health, what this hub is, its OpenAPI document, and the overview."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from quart import Response

import parsyn
from parsyn.hub.hub import hub, principal
from parsyn.hub.openapi import document
from parsyn.hub.routing import Api
from parsyn.services import accounts, health, overview
from parsyn.services.context import Context
from parsyn.wire.api.accounts import SystemOut
from parsyn.wire.api.base import Health
from parsyn.wire.api.training import OverviewOut
from parsyn.wire.states import Scope

api = Api("system", prefix="")
CHECK_SECONDS = 5.0
FRESH_SECONDS = 1.0


@api.endpoint("GET", "/health", scope=None, answers=Health)
async def health_of_parts() -> Response:
    """Whether every part works; 503 with a sentence in place of `ok` at the one that fails."""
    found = await _recent_health()
    good = found.status == "ok"
    answer = Response(
        found.model_dump_json(), status=200 if good else 503, mimetype="application/json"
    )
    if not good:
        answer.headers["Retry-After"] = "5"
    return answer


@api.endpoint("GET", "/api/v1/system", scope=None, answers=SystemOut)
async def system() -> dict[str, Any]:
    """What a browser must know before anyone has logged in."""
    context = hub().context
    return {
        "version": parsyn.__version__,
        "needs_setup": await context.database.read(accounts.needs_setup),
        "registration": context.settings.text("hub.registration"),
    }


@api.endpoint("GET", "/api/v1/openapi.json", scope=None, answers=dict[str, Any])
async def openapi() -> dict[str, Any]:
    """This document."""
    parts = hub().parts
    if "openapi" not in parts:
        parts["openapi"] = document(hub().endpoints)
    answer: dict[str, Any] = parts["openapi"]
    return answer


@api.endpoint("GET", "/api/v1/overview", scope=Scope.READ, answers=OverviewOut)
async def overview_of_mine() -> dict[str, Any]:
    """What runs, what needs a person, and how much there is."""
    return await hub().context.database.read(overview.overview, principal())


async def _recent_health() -> Health:
    """Anyone may ask, so the parts are asked at most once a second, whoever asks."""
    parts = hub().parts
    lock = parts.setdefault("health_lock", asyncio.Lock())
    async with lock:
        at, known = parts.get("health", (0.0, None))
        if known is None or time.monotonic() - at > FRESH_SECONDS:
            known = await _check(hub().context)
            parts["health"] = (time.monotonic(), known)
        checked: Health = known
        return checked


async def _check(context: Context) -> Health:
    # Threads of their own: a database that hangs must not keep its hanging from being told.
    pool = ThreadPoolExecutor(4, thread_name_prefix="health")
    try:
        database, redis, storage, online = await asyncio.gather(
            _in_time(pool, health.database, context, "The database does not answer."),
            _in_time(pool, health.redis, context, "Redis does not answer."),
            _in_time(pool, health.storage, context, "The storage does not answer."),
            _in_time(pool, health.workers_online, context, 0),
        )
    finally:
        pool.shutdown(wait=False)
    good = database == redis == storage == health.OK
    return Health(
        status="ok" if good else "failing",
        version=parsyn.__version__,
        database=database,
        redis=redis,
        storage=storage,
        workers_online=online,
    )


async def _in_time(
    pool: ThreadPoolExecutor, check: Callable[[Context], Any], context: Context, late: Any
) -> Any:
    running = asyncio.get_running_loop().run_in_executor(pool, check, context)
    try:
        return await asyncio.wait_for(running, CHECK_SECONDS)
    except TimeoutError:
        return late
