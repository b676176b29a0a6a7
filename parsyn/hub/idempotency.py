"""`Idempotency-Key`: the same POST twice within 24 h has one effect and one answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from quart import Response, request

from parsyn.hub.hub import hub, principal
from parsyn.services import idempotency


async def once(run: Callable[[], Awaitable[Response]]) -> Response:
    """Run, or repeat the stored answer of the same key. A failed run frees the key again.

    What was begun is brought to its end, and its answer kept, even when the client goes away.
    """
    database = hub().context.database
    key = request.headers["Idempotency-Key"]
    body: bytes = await request.get_data(as_text=False)  # type: ignore[assignment]
    digest = hashlib.sha256(f"{request.method} {request.path}\n".encode() + body).hexdigest()
    row_id, stored = await database.write(idempotency.claim, principal().user_id, key, digest)
    if stored is not None:
        status, text = stored
        answer = Response(text, status=status, mimetype="application/json")
        answer.headers["Idempotency-Replayed"] = "true"
        return answer
    running = asyncio.create_task(_run_and_keep(run, row_id), name="once")
    hub().tasks.add(running)
    running.add_done_callback(hub().tasks.discard)
    return await asyncio.shield(running)


async def _run_and_keep(run: Callable[[], Awaitable[Response]], row_id: int) -> Response:
    database = hub().context.database
    try:
        answer = await run()
    except BaseException:
        await database.write(idempotency.release, row_id)
        raise
    text = str(await answer.get_data(as_text=True))
    await database.write(idempotency.store, row_id, answer.status_code, text)
    return answer
