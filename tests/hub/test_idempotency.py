"""`Idempotency-Key` when the client goes away, or the hub does, before there is an answer."""

from __future__ import annotations

import asyncio

import pytest
from quart import Quart, Response

from parsyn import clock
from parsyn.errors import ParsynError
from parsyn.hub import idempotency
from parsyn.services import idempotency as claims
from parsyn.services.context import Context
from parsyn.store.outbox import IdempotencyKey
from tests.hub.conftest import Person


async def test_a_client_that_hangs_up_finds_its_answer(
    app: Quart, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end, ran = asyncio.Event(), asyncio.Event(), 0

    async def run() -> Response:
        nonlocal ran
        ran += 1
        begun.set()
        await may_end.wait()
        return Response('{"id": 7}', status=201, mimetype="application/json")

    monkeypatch.setattr(idempotency, "principal", lambda: owner.principal)
    headers = {"Idempotency-Key": "once"}
    async with app.test_request_context("/api/v1/things", method="POST", headers=headers):
        first = asyncio.create_task(idempotency.once(run))
        await begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(ParsynError, match="still runs"):
            await idempotency.once(run)
        may_end.set()
        await asyncio.wait(
            [task for task in app.extensions["parsyn"].tasks if task.get_name() == "once"]
        )
        again = await idempotency.once(run)
    assert (again.status_code, again.headers["Idempotency-Replayed"], ran) == (201, "true", 1)


async def test_a_request_that_died_with_its_hub_is_not_repeated(
    context: Context, owner: Person
) -> None:
    write = context.database.write
    await write(claims.claim, owner.user_id, "k", "digest")
    with pytest.raises(ParsynError, match="still runs"):
        await write(claims.claim, owner.user_id, "k", "digest")
    later = clock.shifted(claims.RUNNING_SECONDS + 1)
    with later, pytest.raises(ParsynError, match="See whether it took effect"):
        await write(claims.claim, owner.user_id, "k", "digest")
    with context.database.connection():
        assert IdempotencyKey.select().count() == 1
