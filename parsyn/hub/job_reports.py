"""What every kind of job tells of itself: series, log, timeline, samples."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from quart import request

from parsyn.errors import invalid
from parsyn.hub.hub import hub, principal
from parsyn.hub.routing import integer
from parsyn.services import jobs
from parsyn.wire.states import JobKind, JobStatus

LINES = 1000


def asked_statuses() -> list[JobStatus]:
    """`?status=`, several with commas. Raises 422 for one that there is not."""
    asked = [name for name in request.args.get("status", "").split(",") if name]
    unknown = [name for name in asked if name not in list(JobStatus)]
    if unknown:
        known = ", ".join(JobStatus)
        raise invalid(["query", "status"], f"status must be of {known}, not {unknown[0][:60]!r}.")
    return [JobStatus(name) for name in asked]


async def metrics(job_id: int, kind: JobKind) -> dict[str, Any]:
    """`MetricsOut` of a job that the asker may see."""
    context = hub().context
    await context.database.read(jobs.find, principal(), job_id, kind)
    names = [name for name in request.args.get("names", "").split(",") if name]
    since = integer("since_step", 0, 0, 2**53)
    series = await asyncio.to_thread(context.metrics.series, job_id, names[:100], since)
    return {"series": series}


async def logs(job_id: int, kind: JobKind) -> dict[str, Any]:
    """`LogsOut`: up to 1000 lines after the id `since`."""
    context = hub().context
    await context.database.read(jobs.find, principal(), job_id, kind)
    since = integer("since", 0, 0, 2**53)
    limit = integer("limit", LINES, 1, LINES)
    rows = await asyncio.to_thread(context.metrics.logs, job_id, since, limit)
    items = [
        {"id": id, "at": at, "level": level, "text": text, "attempt": attempt}
        for id, at, level, text, attempt in rows
    ]
    return {"items": items, "next": items[-1]["id"] if items else since}


async def events(job_id: int, kind: JobKind) -> dict[str, Any]:
    """The timeline."""
    return await hub().context.database.read(jobs.events, principal(), job_id, kind)


async def samples(job_id: int, kind: JobKind) -> dict[str, Any]:
    """`SampleOut`s in order."""
    context = hub().context
    await context.database.read(jobs.find, principal(), job_id, kind)
    rows = await asyncio.to_thread(context.metrics.samples, job_id)
    items = [{"step": step, "at": at, **json.loads(body)} for step, at, body in rows]
    return {"items": items, "total": len(items)}
