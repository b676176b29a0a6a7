"""Conversations over a real server with agents on real sockets: what is kept, and how."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from parsyn.hub import sse
from parsyn.services.context import Context
from parsyn.wire.states import FailureReason, ModelState
from parsyn.wire.tasks import Failure
from parsyn.wire.worker import Chat
from tests.hub.chat_stage import Stage, events, staged, text_of, wait_for_token
from tests.hub.scripted_agent import DEADLINE, ScriptedAgent, echo, until_stopped


@pytest.fixture
async def stage(context: Context) -> AsyncIterator[Stage]:
    async with staged(context) as made:
        yield made


async def test_an_answer_streams_and_both_sides_are_kept(stage: Stage) -> None:
    model = stage.model("Small")
    path = await stage.conversation(model)
    async with stage.agent() as agent:
        found = await stage.ask(path, content="Good  morning,\n all")
    names = [name for name, _ in found]
    assert names == [*names[: names.index("token")], *["token"] * names.count("token"), "done"]
    assert set(names[: names.index("token")]) == {"phase"}
    assert text_of(found) == "Echo: Good  morning,\n all"
    done = found[-1][1]
    question, answer = await stage.messages(path)
    assert (question["role"], question["content"]) == ("user", "Good  morning,\n all")
    assert answer["id"] == done["message_id"]
    assert answer["content"] == "Echo: Good  morning,\n all"
    assert answer["finish_reason"] == done["finish_reason"] == "stop"
    assert answer["usage"] == done["usage"] == {"prompt_tokens": 5, "completion_tokens": 5}
    assert answer["timings"]["tokens_per_second"] == 20.0
    assert answer["worker_name"] == done["worker_name"] == "bench"
    assert answer["model_id"] == model
    assert (await stage.call("GET", path)).json()["title"] == "Good morning, all"
    assert [chat.model.id for chat in agent.chats] == [model]


async def test_the_history_and_the_system_prompt_go_with_each_question(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"), system_prompt="Be brief.")
    async with stage.agent() as agent:
        await stage.ask(path, content="one")
        await stage.ask(path, content="two")
    assert agent.chats[1].messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "Echo: one"},
        {"role": "user", "content": "two"},
    )


async def test_parameters_of_the_message_win_over_the_conversations(stage: Stage) -> None:
    params = {"temperature": 0.1, "top_k": 5, "stop": ["\n"], "seed": 7}
    path = await stage.conversation(stage.model("Small"), params=params)
    async with stage.agent() as agent:
        await stage.ask(path, content="hi", params={"temperature": 0, "max_tokens": 9})
    sampling = agent.chats[0].sampling
    assert (sampling.temperature, sampling.top_k, sampling.max_tokens) == (0, 5, 9)
    assert (sampling.stop, sampling.seed, sampling.top_p) == (("\n",), 7, 1.0)


async def test_the_question_is_stored_before_the_model_sees_it(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    stored: list[Any] = []

    async def look(agent: ScriptedAgent, chat: Chat) -> None:
        stored.extend(await stage.messages(path))
        await agent.end(chat)

    async with stage.agent(look):
        await stage.ask(path, content="first things first")
    assert [message["content"] for message in stored] == ["first things first"]


async def test_pieces_of_characters_and_odd_ones_arrive_whole(stage: Stage) -> None:
    pieces = [
        "👩",
        "\u200d",
        "💻",
        " e",
        "\u0301",
        "\u2028",
        '"\\',
        "\r\n",
        "日",
        "本",
        "\x00",
        " 🏳️‍🌈",
    ]

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.say(chat, *pieces)
        await agent.end(chat)

    path = await stage.conversation(stage.model("Small"))
    async with stage.agent(say):
        found = await stage.ask(path, content="say it")
    assert text_of(found) == "".join(pieces)
    kept = (await stage.messages(path))[-1]["content"]
    assert kept == "".join(pieces).replace("\x00", ""), "what no database can hold is left out"


async def test_regenerate_makes_another_version_of_the_last_answer(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    said = iter(["first", "second", "third"])

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.say(chat, next(said))
        await agent.end(chat)

    async with stage.agent(say) as agent:
        await stage.ask(path, content="again?")
        found = await stage.ask(path, regenerate=True)
        await stage.ask(path, content="and then?")
    assert agent.chats[1].messages == agent.chats[0].messages
    question, first, answer, _, _ = await stage.messages(path)
    assert (first["content"], answer["content"]) == ("first", "second")
    assert first["parent_id"] == answer["parent_id"] == question["id"]
    assert answer["id"] == found[-1][1]["message_id"]
    third = [turn["content"] for turn in agent.chats[2].messages]
    assert third == ["again?", "second", "and then?"]


async def test_there_must_be_something_to_ask(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with stage.agent() as agent:
        nothing = await stage.call("POST", f"{path}/messages", {"regenerate": True})
        both = await stage.call("POST", f"{path}/messages", {"content": "a", "regenerate": True})
        blank = await stage.call("POST", f"{path}/messages", {"content": " \n"})
        nul = await stage.call("POST", f"{path}/messages", {"content": "a\x00b"})
        await stage.ask(path, content="a")
        late = await stage.call("POST", f"{path}/messages", {"content": "b", "regenerate": True})
    assert (nothing.status_code, nothing.json()["code"]) == (409, "invalid_state")
    for answer in (both, blank, nul, late):
        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed") or (
            answer is both and answer.status_code == 409
        )
    assert len(agent.chats) == 1
    assert len(await stage.messages(path)) == 2


async def test_leaving_stops_the_agent_and_keeps_what_there_is(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with stage.agent(until_stopped) as agent:
        async with stage.streaming(f"{path}/messages", {"content": "a tale"}) as answer:
            stream = events(answer)
            await wait_for_token(stream)
        await agent.told_to_stop(agent.chats[0].chat_id)
        question, kept = await stage.wait_for_messages(path, 2)
        assert question["content"] == "a tale"
        assert (kept["content"], kept["finish_reason"]) == ("Once upon", "cancelled")
        assert kept["usage"]["completion_tokens"] == 2
        agent.script = echo
        found = await stage.ask(path, content="go on")
    assert found[-1][0] == "done"


async def test_one_who_stops_may_ask_at_once(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    slow = asyncio.Event()

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        if len(agent.chats) > 1:
            return await echo(agent, chat)
        await agent.say(chat, "Well")
        await agent.told_to_stop(chat.chat_id)
        await slow.wait()
        return await agent.end(chat, "cancelled")

    async with stage.agent(say) as agent:
        async with stage.streaming(f"{path}/messages", {"content": "one"}) as answer:
            stream = events(answer)
            await wait_for_token(stream)
        await agent.told_to_stop(agent.chats[0].chat_id)
        asking = asyncio.create_task(stage.ask(path, content="two"))
        slow.set()
        found = await asking
        assert text_of(found) == "Echo: two"
    texts = [message["content"] for message in await stage.messages(path)]
    assert texts == ["one", "Well", "two", "Echo: two"]


async def test_a_conversation_is_answered_once_at_a_time(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with (
        stage.agent(until_stopped),
        stage.streaming(f"{path}/messages", {"content": "one"}) as answer,
    ):
        stream = events(answer)
        await wait_for_token(stream)
        second = await stage.call("POST", f"{path}/messages", {"content": "two"})
    assert (second.status_code, second.json()["code"]) == (409, "conflict")
    assert "stop it or wait" in second.json()["detail"]
    assert [m["role"] for m in await stage.wait_for_messages(path, 2)] == ["user", "assistant"]


async def test_two_conversations_are_answered_at_once(stage: Stage) -> None:
    model = stage.model("Small")
    paths = [await stage.conversation(model), await stage.conversation(model)]
    both = asyncio.Barrier(2)

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.phase(chat, "generating")
        async with asyncio.timeout(DEADLINE):
            await both.wait()
        await echo(agent, chat)

    async with stage.agent(say):
        found = await asyncio.gather(
            stage.ask(paths[0], content="left"), stage.ask(paths[1], content="right")
        )
    assert [text_of(one) for one in found] == ["Echo: left", "Echo: right"]


async def test_a_worker_that_vanishes_ends_the_stream_with_a_sentence(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))

    async def half(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.say(chat, "Half an")
        await agent.socket.close()

    async with stage.agent(half):
        found = await stage.ask(path, content="all of it")
    name, problem = found[-1]
    assert name == "error"
    assert problem["status"] == 503
    assert "bench went away" in problem["detail"]
    kept = (await stage.messages(path))[-1]
    assert (kept["content"], kept["finish_reason"]) == ("Half an", "worker_lost")
    async with stage.agent(name="another") as agent:
        found = await stage.ask(path, content="all of it")
    assert agent.chats[0].messages == ({"role": "user", "content": "all of it"},)
    texts = [message["content"] for message in await stage.messages(path)]
    assert texts == ["all of it", "Echo: all of it"], "asked again, it is the same question"


async def test_a_failed_answer_says_why_and_never_replaces_a_good_one(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))

    async def fail(agent: ScriptedAgent, chat: Chat) -> None:
        failure = Failure(
            reason=FailureReason.OUT_OF_MEMORY, message="It does not fit.", advice="Use QLoRA."
        )
        await agent.end(chat, "error", failure=failure)

    async with stage.agent() as agent:
        await stage.ask(path, content="hi")
        agent.script = fail
        found = await stage.ask(path, regenerate=True)
    assert found[-1][0] == "error"
    assert found[-1][1]["detail"] == "It does not fit. Use QLoRA."
    texts = [message["content"] for message in await stage.messages(path)]
    assert texts == ["hi", "Echo: hi"]


async def test_without_a_worker_nothing_is_stored_and_it_says_what_to_do(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    answer = await stage.call("POST", f"{path}/messages", {"content": "anyone?"})
    assert (answer.status_code, answer.json()["code"]) == (503, "no_worker")
    assert "parsyn start" in answer.json()["detail"]
    assert answer.headers["Retry-After"]
    assert await stage.messages(path) == []
    assert (await stage.call("GET", path)).json()["title"] == ""


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"state": ModelState.TRAINING}, "still being trained"),
        ({"state": ModelState.REGISTERED}, "still being fetched"),
        ({"state": ModelState.FAILED, "failure": {"message": "The disk was full."}}, "disk was"),
    ],
)
async def test_a_model_that_is_not_ready_says_why(
    stage: Stage, columns: dict[str, Any], word: str
) -> None:
    path = await stage.conversation(stage.model("Small", **columns))
    answer = await stage.call("POST", f"{path}/messages", {"content": "hi"})
    assert (answer.status_code, answer.json()["code"]) == (409, "invalid_state")
    assert word in answer.json()["detail"]


async def test_deleting_a_conversation_stops_its_answer(stage: Stage) -> None:
    path = await stage.conversation(stage.model("Small"))
    async with (
        stage.agent(until_stopped) as agent,
        stage.streaming(f"{path}/messages", {"content": "one"}) as answer,
    ):
        stream = events(answer)
        await wait_for_token(stream)
        deleted = await stage.call("DELETE", path)
        rest = [event async for event in stream]
        await agent.told_to_stop(agent.chats[0].chat_id)
    assert deleted.status_code == 204
    assert rest[-1][0] == "done"
    assert rest[-1][1]["message_id"] is None
    assert (await stage.call("GET", path)).status_code == 404


async def test_a_silent_stream_is_kept_alive(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.02)
    path = await stage.conversation(stage.model("Small"))
    heard = asyncio.Event()

    async def think(agent: ScriptedAgent, chat: Chat) -> None:
        async with asyncio.timeout(DEADLINE):
            await heard.wait()
        await echo(agent, chat)

    lines: list[str] = []
    async with (
        stage.agent(think),
        stage.streaming(f"{path}/messages", {"content": "hi"}) as answer,
    ):
        async for line in answer.aiter_lines():
            lines.append(line)
            if line == ": keep-alive":
                heard.set()
    assert heard.is_set()
    assert "event: done" in lines


async def test_two_models_are_compared_side_by_side(stage: Stage) -> None:
    models = [stage.model("Base"), stage.model("Tuned")]

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.phase(chat, "loading")
        await agent.say(chat, "I am ", chat.model.name)
        await agent.end(chat, "length")

    body = {"model_ids": models, "messages": [{"role": "user", "content": "who?"}]}
    async with stage.agent(say), stage.streaming("/api/v1/compare", body) as answer:
        found = [event async for event in events(answer)]
    for side, name in (("a", "Base"), ("b", "Tuned")):
        mine = [(kind, data) for kind, data in found if data["side"] == side]
        assert text_of(mine) == f"I am {name}"
        assert mine[-1][0] == "done"
        assert mine[-1][1]["finish_reason"] == "length"


async def test_one_side_of_a_comparison_may_fail(stage: Stage) -> None:
    models = [stage.model("Base"), stage.model("Tuned")]

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        failed = chat.model.name == "Base"
        failure = Failure(reason=FailureReason.MODEL_UNAVAILABLE, message="It is gone.")
        await agent.end(chat, "error" if failed else "stop", failure=failure if failed else None)

    body = {"model_ids": models, "messages": [{"role": "user", "content": "who?"}]}
    async with stage.agent(say), stage.streaming("/api/v1/compare", body) as answer:
        found = [event async for event in events(answer)]
    last = {data["side"]: (kind, data.get("detail")) for kind, data in found}
    assert last == {"a": ("error", "It is gone."), "b": ("done", None)}
