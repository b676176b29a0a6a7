"""An agent of an older and one of a newer version, within one protocol number, at this hub."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from parsyn.services.context import Context
from parsyn.wire.worker import CloseCode, Heartbeat, HeartbeatAck, WorkerMessage
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import Work, working

RECORDED = Path(__file__).parents[1] / "wire" / "recorded" / "0.1.0.json"


@pytest.fixture
async def work(context: Context) -> AsyncIterator[Work]:
    async with working(context) as made:
        yield made


class OldAgent(FakeAgent):
    """Says only what 0.1.0 could say."""

    types = json.loads(RECORDED.read_text())["worker_types"]

    async def send(self, message: WorkerMessage) -> None:
        frame = self._then(message.model_dump(mode="json"), type(message).__name__)
        await self.socket.send(json.dumps(frame))

    def _then(self, frame: dict[str, Any], name: str) -> dict[str, Any]:
        known = self.types[name]["properties"]
        frame = {key: value for key, value in frame.items() if key in known}
        if "hardware" in frame:
            frame["hardware"] = self._then(frame["hardware"], "Hardware")
        return frame


class NewAgent(FakeAgent):
    """Says more than this hub knows, and things that it never heard of."""

    async def send(self, message: WorkerMessage) -> None:
        frame = {**message.model_dump(mode="json"), "mood": {"good": True}}
        if "hardware" in frame:
            frame["hardware"]["quantum"] = 7
        await self.socket.send(json.dumps(frame))
        if frame["type"] != "hello":
            await self.socket.send('{"type": "telepathy", "task_id": 1, "thought": "hm"}')


@pytest.mark.parametrize("kind", [OldAgent, NewAgent])
async def test_it_does_a_whole_job(work: Work, kind: type[FakeAgent]) -> None:
    agent = kind(work.stage.url, await work.worker_key())
    await agent.connect()
    job = await work.start()
    offer = await agent.offer()
    await agent.state(offer, 1, 2)
    await agent.metric(offer, 1, loss=2.0)
    await agent.log(offer, "Hello.")
    await agent.checkpoint(offer, 1)
    await agent.send(Heartbeat())
    await agent.wait_for(HeartbeatAck)
    await agent.complete(offer, {"adapter_model.safetensors": b"weights"})
    found = await work.status(job["id"], "completed")
    assert found["attempt"] == 1
    await agent.acknowledged()
    assert agent.close_code is None
    await agent.leave()


async def test_a_hello_of_another_protocol_is_refused_in_words_whatever_its_shape(
    work: Work,
) -> None:
    key = await work.worker_key()
    for frame, code, words in (
        ({"type": "hello", "protocol": 9}, CloseCode.PROTOCOL_TOO_NEW, "update the hub"),
        ({"type": "hello", "protocol": 9, "version": {"major": 2}, "running": 1},
         CloseCode.PROTOCOL_TOO_NEW, "update the hub"),
        ({"type": "hello", "protocol": 0}, CloseCode.PROTOCOL_TOO_OLD, "update the agent"),
        ({"type": "hello", "protocol": "x"}, CloseCode.BAD_MESSAGE, "Not understood"),
    ):  # fmt: skip
        agent = FakeAgent(work.stage.url, key)
        await agent.open()
        await agent.socket.send(json.dumps(frame))
        got, reason = await agent.refusal()
        assert (got, words in reason) == (code, True), reason
