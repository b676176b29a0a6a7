"""Two hub processes on one database: whoever is asked, whoever holds the socket, it works.

Both run in this process, each with its own bus, as two processes would have. Deaths are in
tests/e2e/test_growing.py, where they are real.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from parsyn.hub import members
from parsyn.hub.chat import router_of
from parsyn.pubsub import GAP, GAP_TOPIC, Bus
from parsyn.services.context import Context
from parsyn.store.conversations import Conversation
from parsyn.store.processes import HubProcess
from parsyn.store.workers import Worker
from parsyn.wire.worker import ChatDone, CloseCode, Token
from tests.hub.chat_stage import Stage, asking, events, listening, staged, text_of, wait_for_token
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import Work, open_settings
from tests.hub.scripted_agent import DEADLINE, ScriptedAgent, echo, until_stopped
from tests.hub.test_socket_dashboard import Browser

pytestmark = pytest.mark.postgres


@dataclass
class Pair:
    """`here` and `there` are the same hub, on two ports."""

    here: Work
    there: Work


@pytest.fixture
async def pair(
    data_dir: Path, redis_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Pair]:
    monkeypatch.setattr(members, "LONGEST_SECONDS", 0.25)
    context = open_settings(data_dir, redis_url, hub_database=postgres_url)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(staged(context))
        second = await stack.enter_async_context(beside(first, redis_url))
        work = Work(first)
        works = [work, copy(work)]
        works[1].stage, works[1].context, works[1].owner = second, second.context, second.owner
        await both_know(first, second)
        yield Pair(*works)
        await work.close()
    context.close()


@asynccontextmanager
async def beside(stage: Stage, redis_url: str) -> AsyncIterator[Stage]:
    """Another process of the same hub."""
    bus = Bus(redis_url)
    settings = stage.context.settings
    moved = replace(settings, values={**settings.values, "hub.port": 8001})
    context = replace(stage.context, bus=bus, settings=moved)
    async with listening(context) as (url, app), asking(url) as http:
        yield Stage(url, app, context, http, replace(stage.owner, app=app))
    bus.close()


async def both_know(*stages: Stage) -> None:
    async with asyncio.timeout(DEADLINE):
        for stage in stages:
            while not stage.app.extensions["parsyn"].parts["members"].others:
                await asyncio.sleep(0.02)


async def test_a_question_reaches_a_worker_of_the_other_process(pair: Pair) -> None:
    model = pair.here.stage.model("Echo")
    async with pair.here.stage.agent(echo):
        path = await pair.there.stage.conversation(model)
        found = await pair.there.stage.ask(path, content="what is said here")
    assert text_of(found) == "Echo: what is said here"
    assert found[-1][0] == "done"


async def test_v1_streams_from_a_worker_of_the_other_process(pair: Pair) -> None:
    model = pair.here.stage.model("Echo")
    body: dict[str, Any] = {"model": str(model), "messages": [{"role": "user", "content": "a b c"}]}
    async with pair.here.stage.agent(echo):
        whole = await pair.there.stage.call("POST", "/v1/chat/completions", body)
        async with pair.there.stage.streaming(
            "/v1/chat/completions", {**body, "stream": True}
        ) as s:
            streamed = (await s.aread()).decode()
    assert whole.json()["choices"][0]["message"]["content"] == "Echo: a b c"
    assert streamed.rstrip().endswith("data: [DONE]")


async def test_the_files_of_a_chat_of_the_other_process_may_be_fetched(pair: Pair) -> None:
    model = pair.here.model_id
    router = router_of(pair.here.stage.app.extensions["parsyn"])
    seen: list[bool] = []

    async def look(agent: ScriptedAgent, chat: Any) -> None:
        key = chat.model.files[0].key
        seen.append(router.may_fetch(agent.welcome.worker_id, chat.chat_id, key))
        seen.append(router.may_fetch(agent.welcome.worker_id, chat.chat_id, "models/9/other"))
        await echo(agent, chat)

    async with pair.here.stage.agent(look):
        path = await pair.there.stage.conversation(model)
        await pair.there.stage.ask(path, content="hello")
    assert seen == [True, False]


async def test_a_conversation_deleted_at_one_process_stops_the_answer_of_the_other(
    pair: Pair,
) -> None:
    model = pair.here.stage.model("Slow")
    async with pair.here.stage.agent(until_stopped) as agent:
        path = await pair.there.stage.conversation(model)
        async with pair.there.stage.streaming(f"{path}/messages", {"content": "go"}) as answer:
            stream = events(answer)
            await wait_for_token(stream)
            deleted = await pair.here.stage.call("DELETE", path)
            assert deleted.is_success, deleted.text
            await agent.told_to_stop(agent.chats[0].chat_id)
            rest = [event async for event in stream]
    assert rest[-1][1]["finish_reason"] == "cancelled"


async def test_one_answer_at_a_time_whichever_process_writes_it(pair: Pair) -> None:
    model = pair.here.stage.model("Slow")
    async with pair.here.stage.agent(until_stopped) as agent:
        path = await pair.there.stage.conversation(model)
        async with pair.there.stage.streaming(f"{path}/messages", {"content": "go"}) as answer:
            stream = events(answer)
            await wait_for_token(stream)
            second = await pair.here.stage.call("POST", f"{path}/messages", {"content": "more"})
            assert second.status_code == 409
        # The reader has gone. What came is stored, then the other process may go on.
        agent.script = echo
        found = await pair.here.stage.ask(path, content="more")
        assert text_of(found) == "Echo: more"
        kept = [message["content"] for message in await pair.here.stage.messages(path)]
    assert kept == ["go", "Once upon", "more", "Echo: more"]
    with pair.here.context.database.connection():
        assert Conversation.get().answering is None


async def test_a_worker_that_goes_ends_the_answer_in_the_other_process(pair: Pair) -> None:
    async def leaves(agent: ScriptedAgent, chat: Any) -> None:
        await agent.say(chat, "Once")
        await agent.socket.close()

    model = pair.here.stage.model("Gone")
    async with pair.here.stage.agent(leaves):
        path = await pair.there.stage.conversation(model)
        found = await pair.there.stage.ask(path, content="go")
    assert found[-1][0] == "error"
    assert "went away" in found[-1][1]["detail"]


async def test_a_lost_token_is_no_silent_hole(pair: Pair) -> None:
    async def skips(agent: ScriptedAgent, chat: Any) -> None:
        for n in (1, 3):
            await agent._send(Token(chat_id=chat.chat_id, n=n, text=f"{n}"))
        await agent._send(ChatDone(chat_id=chat.chat_id, finish_reason="stop"))

    model = pair.here.stage.model("Holes")
    async with pair.here.stage.agent(skips):
        path = await pair.there.stage.conversation(model)
        found = await pair.there.stage.ask(path, content="go")
    assert found[-1][0] == "error"
    assert "was lost" in found[-1][1]["detail"]


async def test_a_job_of_one_process_runs_at_an_agent_of_the_other(pair: Pair) -> None:
    agent = await pair.here.worker()
    browser = await Browser(pair.there).open(pair.there.owner.key)
    job = await pair.there.start()
    offer = await agent.offer()
    await browser.watch(f"job:{job['id']}")
    await agent.metric(offer, 1, loss=2.5)
    heard = await browser.next("job.metrics")
    assert heard["points"][0]["values"] == {"loss": 2.5}
    await pair.there.ask("POST", f"/training-jobs/{job['id']}/cancel")
    await agent.until(
        lambda: any(m.type == "cancel" for m in agent.received), "the other process was not heard"
    )
    await agent.result(offer, "cancelled")
    await pair.there.status(job["id"], "cancelled")
    await browser.socket.close()


async def test_bytes_go_through_either_process(pair: Pair) -> None:
    agent = await pair.here.worker()
    job = await pair.there.start()
    offer = await agent.offer()
    agent.http_url = pair.there.stage.url
    await agent.complete(offer, {"adapter_model.safetensors": b"weights"})
    await pair.here.status(job["id"], "completed")


async def test_a_deleted_worker_is_cut_off_by_the_other_process(pair: Pair) -> None:
    agent = await pair.here.worker()
    await pair.there.ask("DELETE", f"/workers/{agent.welcome.worker_id}", status=204)
    async with asyncio.timeout(5):
        code, _ = await agent.closed()
    assert code == CloseCode.REVOKED


async def test_a_deleted_worker_is_cut_off_though_nothing_could_be_said(pair: Pair) -> None:
    agent = await pair.here.worker()
    with pair.here.context.database.transaction():
        Worker.update(deleted_at=1.0, connection=None).execute()
    async with asyncio.timeout(5):
        code, reason = await agent.closed()
    assert (code, reason) == (CloseCode.REVOKED, "rig was removed.")


async def test_a_second_agent_with_the_key_is_refused_by_the_other_process(pair: Pair) -> None:
    agent = await pair.here.worker(instance="one")
    twin = FakeAgent(pair.there.stage.url, agent.key, instance="two")
    await twin.open()
    await twin.send(twin.hello())
    code, reason = await twin.refusal()
    assert code == CloseCode.ALREADY_CONNECTED
    assert "rig is connected already" in reason


async def test_an_agent_that_comes_back_to_the_other_process_keeps_its_task(pair: Pair) -> None:
    agent = await pair.here.worker(instance="one")
    job = await pair.here.start()
    offer = await agent.offer()
    back = FakeAgent(pair.there.stage.url, agent.key, instance="one")
    back.running = dict(agent.running)
    await back.connect()
    assert (await agent.closed())[0] == CloseCode.ALREADY_CONNECTED
    await back.metric(offer, 1, loss=1.0)
    await back.acknowledged()
    await back.complete(offer, {"adapter_model.safetensors": b"weights"})
    found = await pair.here.status(job["id"], "completed")
    assert found["attempt"] == 1
    with pair.here.context.database.connection():
        held = Worker.get_by_id(back.welcome.worker_id).connection
    assert held.startswith(pair.there.context.bus.origin)
    await back.leave()


async def test_only_what_a_dead_process_held_is_cleared(pair: Pair) -> None:
    agent = await pair.here.worker("alive")
    key = await pair.here.worker_key("orphan")
    assert key
    with pair.here.context.database.transaction():
        HubProcess.create(name="deadbeef", place="elsewhere:1", version="0", beat=7)
        Worker.update(connection="deadbeef:3", status="idle").where(
            Worker.name == "orphan"
        ).execute()
    async with asyncio.timeout(DEADLINE):
        while (await pair.there.ask("GET", "/workers?search=orphan"))["items"][0]["status"] != (
            "offline"
        ):
            await asyncio.sleep(0.05)
    with pair.here.context.database.connection():
        held = {row.name: row.connection for row in Worker.select()}
        names = {row.name for row in HubProcess.select()}
    assert held["orphan"] is None
    assert held["alive"] is not None
    assert names == {pair.here.context.bus.origin, pair.there.context.bus.origin}
    assert agent.close_code is None


async def test_nobody_is_dead_because_this_process_was_away(pair: Pair) -> None:
    here = pair.here.stage.app.extensions["parsyn"].parts["members"]
    long_ago = time.monotonic() - 1000
    with pair.here.context.database.transaction():
        HubProcess.create(name="sleeper", place="elsewhere:2", version="0", beat=3)
    here._seen["sleeper"], here._last = (3, long_ago), long_ago
    await here.once()
    with pair.here.context.database.connection():
        assert HubProcess.select().where(HubProcess.name == "sleeper").exists()
    assert "sleeper" in here.others


async def test_one_that_was_taken_for_dead_says_who_is_connected(pair: Pair) -> None:
    agent = await pair.here.worker()
    with pair.here.context.database.transaction():
        HubProcess.delete().where(HubProcess.name == pair.here.context.bus.origin).execute()
        Worker.update(connection=None).execute()

    def known() -> bool:
        with pair.here.context.database.connection():
            return Worker.get_by_id(agent.welcome.worker_id).connection is not None

    async with asyncio.timeout(DEADLINE):
        while not known():
            await asyncio.sleep(0.05)


async def test_dashboards_subscribe_again_after_a_gap(pair: Pair) -> None:
    browser = await Browser(pair.there).open(pair.there.owner.key)
    await browser.watch("fleet")
    pair.there.stage.app.extensions["parsyn"].parts["lifecycle"].heed(GAP, GAP_TOPIC, {})
    await browser.next("resubscribe")
    await browser.socket.close()


async def test_a_process_that_leaves_is_forgotten(pair: Pair, redis_url: str) -> None:
    async with beside(pair.here.stage, redis_url) as third:
        name = third.context.bus.origin
        await both_know(third)
        with pair.here.context.database.connection():
            assert HubProcess.select().where(HubProcess.name == name).exists()
    with pair.here.context.database.connection():
        assert not HubProcess.select().where(HubProcess.name == name).exists()


def test_process_names_fit_connections(context: Context) -> None:
    from parsyn.services.presence import process_of

    assert process_of(f"{context.bus.origin}:12") == context.bus.origin
