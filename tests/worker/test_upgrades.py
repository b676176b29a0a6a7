"""This agent at a hub of a newer version, within one protocol number."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from websockets.asyncio.server import ServerConnection

from parsyn.wire.worker import Ack, HubMessage, Result
from tests.worker.conftest import Started, offer
from tests.worker.fake_hub import FakeHub


class NewHub(FakeHub):
    """Says more than this agent knows, and things that it never heard of."""

    async def send(self, message: HubMessage) -> None:
        assert self.socket is not None
        await self.socket.send('{"type": "telepathy", "thought": "hm"}')
        await self.socket.send(json.dumps(with_more(message.model_dump(mode="json"))))

    async def _store(self, socket: ServerConnection, message: Any) -> None:
        self.acknowledges = False
        await super()._store(socket, message)
        ack = Ack(task_id=message.task_id, attempt=message.attempt, seqs=(message.seq,))
        await socket.send(json.dumps(with_more(ack.model_dump(mode="json"))))


def with_more(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{k: v if k == "params" else with_more(v) for k, v in value.items()}, "mood": 1}
    return [with_more(item) for item in value] if isinstance(value, list) else value


@pytest_asyncio.fixture
async def hub() -> AsyncIterator[NewHub]:
    hub = NewHub()
    await hub.start()
    yield hub
    await hub.vanish()


async def test_it_does_a_whole_task(hub: NewHub, start_agent: Started) -> None:
    await start_agent()
    assert hub.socket is not None
    of_the_future = offer(hub, steps=2).model_dump(mode="json")
    of_the_future["spec"]["kind"] = "dream"
    await hub.socket.send(json.dumps(of_the_future))
    await hub.send(offer(hub, steps=2))
    result = await hub.wait_for(Result)
    assert result.outcome == "completed"
    assert hub.connections == 1
