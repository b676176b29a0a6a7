"""Conversations that branch: questions changed, answers made anew, and what readers think."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from parsyn.services.context import Context
from parsyn.store.conversations import Conversation, Message
from parsyn.wire.worker import Chat
from tests.hub.chat_stage import Stage, events, staged, text_of
from tests.hub.scripted_agent import DEADLINE, ScriptedAgent


@pytest.fixture
async def stage(context: Context) -> AsyncIterator[Stage]:
    async with staged(context) as made:
        yield made


def said(chat: Chat) -> list[str]:
    return [str(turn["content"]) for turn in chat.messages]


async def ids(stage: Stage, path: str) -> dict[str, int]:
    return {message["content"]: message["id"] for message in await stage.messages(path)}


async def test_a_changed_question_begins_a_branch_and_the_old_one_stays(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with stage.agent() as agent:
        await stage.ask(path, content="one")
        await stage.ask(path, content="two")
        known = await ids(stage, path)
        await stage.ask(path, content="zwei", parent_id=known["Echo: one"])
        await stage.ask(path, content="drei")
        await stage.ask(path, content="three", parent_id=known["Echo: two"])
    assert said(agent.chats[2]) == ["one", "Echo: one", "zwei"]
    assert said(agent.chats[3]) == ["one", "Echo: one", "zwei", "Echo: zwei", "drei"]
    assert said(agent.chats[4]) == ["one", "Echo: one", "two", "Echo: two", "three"]
    parents = {message["content"]: message["parent_id"] for message in await stage.messages(path)}
    assert parents["two"] == parents["zwei"] == known["Echo: one"]
    assert len(parents) == 10


async def test_the_first_question_may_be_changed_too(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with stage.agent() as agent:
        await stage.ask(path, content="one")
        await stage.ask(path, content="eins", parent_id=None)
    assert said(agent.chats[1]) == ["eins"]
    roots = [m["content"] for m in await stage.messages(path) if m["parent_id"] is None]
    assert roots == ["one", "eins"]


async def test_an_earlier_answer_is_made_anew_where_it_stands(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with stage.agent() as agent:
        await stage.ask(path, content="one")
        await stage.ask(path, content="two")
        known = await ids(stage, path)
        await stage.ask(path, regenerate=True, parent_id=known["one"])
    assert said(agent.chats[2]) == ["one"]
    answers = [m["id"] for m in await stage.messages(path) if m["parent_id"] == known["one"]]
    assert len(answers) == 2


async def test_messages_from_before_branches_follow_one_another(
    stage: Stage, context: Context
) -> None:
    path = await stage.conversation(stage.model("Small"))
    with context.database.transaction():
        talk = Conversation.get()
        for role, content in (("user", "a"), ("assistant", "A"), ("user", "b"), ("assistant", "B")):
            Message.create(conversation=talk, role=role, content=content, finish_reason="stop")
    messages = await stage.messages(path)
    assert [m["parent_id"] for m in messages] == [None, *[m["id"] for m in messages[:-1]]]
    async with stage.agent() as agent:
        await stage.ask(path, content="c")
    assert said(agent.chats[0]) == ["a", "A", "b", "B", "c"]


async def test_a_message_of_elsewhere_is_no_parent(stage: Stage) -> None:
    model = stage.model("Small")
    path, elsewhere = await stage.conversation(model), await stage.conversation(model)
    async with stage.agent():
        await stage.ask(elsewhere, content="there")
        foreign = (await ids(stage, elsewhere))["there"]
        for body in ({"content": "here"}, {"regenerate": True}):
            answer = await stage.call("POST", f"{path}/messages", {**body, "parent_id": foreign})
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["loc"] == ["parent_id"]
    assert await stage.messages(path) == []


async def test_answers_are_rated(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    assert path.startswith("/api/v1/conversations/")
    async with stage.agent():
        await stage.ask(path, content="one")
    known = await ids(stage, path)
    answer = known["Echo: one"]
    for rating in (1, -1, None):
        rated = await stage.call("PATCH", f"{path}/messages/{answer}", {"rating": rating})
        assert (rated.status_code, rated.json()["rating"]) == (200, rating)
        assert (await stage.messages(path))[1]["rating"] == rating
    assert (
        await stage.call("PATCH", f"{path}/messages/{answer}", {"rating": 5})
    ).status_code == 422
    question = await stage.call("PATCH", f"{path}/messages/{known['one']}", {"rating": 1})
    assert (question.status_code, question.json()["errors"][0]["loc"]) == (422, ["rating"])
    assert (await stage.call("PATCH", f"{path}/messages/999", {"rating": 1})).status_code == 404


async def test_loading_says_how_long_it_took_the_last_time(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    seen = asyncio.Event()

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.phase(chat, "loading")
        async with asyncio.timeout(DEADLINE):
            await seen.wait()
        await agent.phase(chat, "generating")
        await agent.say(chat, "Yo")
        await agent.end(chat)

    async def expected() -> float | None:
        seen.clear()
        about: float | None = None
        async with stage.streaming(f"{path}/messages", {"content": "Hi"}) as answer:
            async for _, data in events(answer):
                if data.get("phase") == "loading":
                    about = data.get("about_seconds")
                    seen.set()
        return about

    async with stage.agent(say):
        first, second = await expected(), await expected()
    assert first is None
    assert second is not None
    assert 0 < second < DEADLINE


async def test_each_side_of_a_comparison_goes_on_with_its_own_answers(stage: Stage) -> None:
    models = [stage.model("Base"), stage.model("Tuned")]
    ask: dict[str, Any] = {"role": "user", "content": "and?"}
    body = {
        "model_ids": models,
        "messages": [{"role": "assistant", "content": "I am Base"}, ask],
        "messages_b": [{"role": "assistant", "content": "I am Tuned"}, ask],
    }
    async with stage.agent() as agent, stage.streaming("/api/v1/compare", body) as answer:
        found = [event async for event in events(answer)]
    got = {chat.model.name: said(chat) for chat in agent.chats}
    assert got == {"Base": ["I am Base", "and?"], "Tuned": ["I am Tuned", "and?"]}
    assert text_of([one for one in found if one[1]["side"] == "b"]) == "Echo: and?"
