"""The official OpenAI client, with only its base URL changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from parsyn.services.context import Context
from parsyn.store.projects import Project
from parsyn.wire.states import FailureReason, ModelState, ProjectRole, Scope
from parsyn.wire.tasks import Failure
from parsyn.wire.worker import Chat
from tests.hub.chat_stage import Stage, staged
from tests.hub.conftest import make_key, member, person
from tests.hub.scripted_agent import DEADLINE, ScriptedAgent, until_stopped

HI: list[Any] = [{"role": "user", "content": "hi there"}]


@pytest.fixture
async def stage(context: Context) -> AsyncIterator[Stage]:
    async with staged(context) as made:
        yield made


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    async with client_with(stage, stage.owner.key) as made:
        yield made


def client_with(stage: Stage, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{stage.url}/v1", api_key=key, timeout=DEADLINE, max_retries=0
    )


async def test_a_whole_answer(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")
    async with stage.agent() as agent:
        answer = await client.chat.completions.create(model="small", messages=HI)
    assert answer.object == "chat.completion"
    assert answer.model == "small"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == "Echo: hi there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (5, 3)
    assert answer.usage.total_tokens == 8
    assert agent.chats[0].sampling.max_tokens == 2048


async def test_a_stream_of_chunks(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")
    async with stage.agent():
        stream = await client.chat.completions.create(model="small", messages=HI, stream=True)
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "Echo: hi there"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


async def test_usage_comes_last_where_it_is_asked_for(
    stage: Stage, client: openai.AsyncOpenAI
) -> None:
    stage.model("Small")
    async with stage.agent():
        stream = await client.chat.completions.create(
            model="small", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 8
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_every_parameter_arrives(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")
    messages: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    async with stage.agent() as agent:
        await client.chat.completions.create(
            model="small",
            messages=messages,
            temperature=0.2,
            top_p=0.9,
            max_completion_tokens=11,
            stop="\n\n",
            seed=3,
            extra_body={"top_k": 4},
            user="someone",
            n=1,
            logprobs=False,
            presence_penalty=0,
            response_format={"type": "text"},
            metadata={"a": "b"},
        )
    sampling = agent.chats[0].sampling
    assert sampling.model_dump() == {
        "temperature": 0.2,
        "top_p": 0.9,
        "top_k": 4,
        "max_tokens": 11,
        "stop": ("\n\n",),
        "seed": 3,
    }
    assert agent.chats[0].messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "ab"},
    )


async def test_top_p_zero_is_greedy(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")
    async with stage.agent() as agent:
        await client.chat.completions.create(model="small", messages=HI, top_p=0, temperature=1)
    assert (agent.chats[0].sampling.temperature, agent.chats[0].sampling.top_p) == (0, 1)


async def test_a_text_is_continued(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")

    async def say(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.say(chat, f"<{chat.raw_prompt}>", " on")
        await agent.end(chat, "length", tokens=2)

    async with stage.agent(say) as agent:
        whole = await client.completions.create(model="small", prompt="Go", max_tokens=2)
        stream = await client.completions.create(model="small", prompt=["Go"], stream=True)
        chunks = [chunk async for chunk in stream]
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == ("<Go> on", "length")
    assert "".join(chunk.choices[0].text for chunk in chunks) == "<Go> on"
    assert chunks[-1].choices[0].finish_reason == "length"
    assert [chat.sampling.max_tokens for chat in agent.chats] == [2, 16]


# --- models -----------------------------------------------------------------------------------


async def test_models_are_listed_and_found_by_every_name(
    stage: Stage, client: openai.AsyncOpenAI
) -> None:
    base = stage.model("Small")
    tuned = stage.model("Support", base_model=base, formats=["adapter"])
    stage.model("Unfinished", state=ModelState.TRAINING)
    listed = [model async for model in await client.models.list()]
    assert [model.id for model in listed] == ["support", "small"]
    assert all(model.object == "model" and model.created > 0 for model in listed)
    names = ("support", "ft:small:support", "ft:small:Support", str(tuned))
    async with stage.agent() as agent:
        for name in names:
            assert (await client.models.retrieve(name)).id == name
            await client.chat.completions.create(model=name, messages=HI)
    assert [chat.model.id for chat in agent.chats] == [tuned] * len(names)
    assert {chat.model.base.id for chat in agent.chats if chat.model.base} == {base}


async def test_a_slug_that_two_projects_use_means_ones_own_model(stage: Stage) -> None:
    friend = person(stage.app, stage.context, "friend@example.org")
    theirs = stage.model("Small", of=friend)
    joined = member(stage.app, stage.context, friend, "joined@example.org", ProjectRole.VIEWER)
    client = client_with(stage, joined.key)
    assert [model.id async for model in await client.models.list()] == ["small"]
    mine = stage.model("Small", of=joined, project=_personal(stage, joined.user_id))
    listed = [model.id async for model in await client.models.list()]
    assert listed == ["small", str(theirs)]
    assert mine != theirs
    await client.close()


def _personal(stage: Stage, user_id: int) -> int:
    with stage.context.database.connection():
        return int(Project.get(Project.owner == user_id).id)


async def test_an_unknown_model_is_not_found(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")
    for name in ("nothing", "ft:nothing:small", "99999", "ft:", "9" * 30, "a/b"):
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve(name)
        with pytest.raises(openai.NotFoundError, match="GET /v1/models") as caught:
            await client.chat.completions.create(model=name, messages=HI)
        error: Any = caught.value.body
        assert error["code"] == "model_not_found"
        assert error["param"] == "model"
        assert error["type"] == "invalid_request_error"


# --- errors -----------------------------------------------------------------------------------


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": 2}, "n"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ({"logprobs": True}, "logprobs"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"frequency_penalty": 1.5}, "frequency_penalty"),
    ({"temprature": 1}, "temprature"),
    ({"temperature": 3}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"stop": [""]}, "stop.0"),
    ({"seed": 2**64}, "seed"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0"),
    ({"messages": [{"role": "user", "content": None}]}, "messages.0.content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages.0.content",
    ),
    ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
]


async def test_what_cannot_be_done_is_refused_with_a_sentence(
    stage: Stage, client: openai.AsyncOpenAI
) -> None:
    stage.model("Small")
    for more, param in REFUSED:
        body = {"messages": HI, **more}
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(
                model="small", messages=body.pop("messages"), extra_body=body
            )
        error: Any = caught.value.body
        assert error["param"] == param
        assert error["type"] == "invalid_request_error"
        assert len(error["message"]) > 10


async def test_a_mistyped_parameter_names_the_nearest(
    stage: Stage, client: openai.AsyncOpenAI
) -> None:
    stage.model("Small")
    with pytest.raises(openai.BadRequestError, match="temperature"):
        await client.chat.completions.create(
            model="small", messages=HI, extra_body={"temprature": 1}
        )


async def test_without_a_worker_it_is_503_with_what_to_do(
    stage: Stage, client: openai.AsyncOpenAI
) -> None:
    stage.model("Small")
    for stream in (False, True):
        with pytest.raises(openai.InternalServerError, match="parsyn start") as caught:
            await client.chat.completions.create(model="small", messages=HI, stream=stream)
        assert caught.value.status_code == 503
        assert caught.value.response.headers["Retry-After"]


async def test_a_failed_answer_is_an_error_whole_or_streamed(
    stage: Stage, client: openai.AsyncOpenAI
) -> None:
    stage.model("Small")

    async def fail(agent: ScriptedAgent, chat: Chat) -> None:
        await agent.say(chat, "I")
        failure = Failure(reason=FailureReason.USER_ERROR, message="The conversation is too long.")
        await agent.end(chat, "error", failure=failure)

    async with stage.agent(fail):
        with pytest.raises(openai.BadRequestError, match="too long"):
            await client.chat.completions.create(model="small", messages=HI)
        stream = await client.chat.completions.create(model="small", messages=HI, stream=True)
        with pytest.raises(openai.APIError, match="too long"):
            [chunk async for chunk in stream]


async def test_credentials_of_every_kind(stage: Stage) -> None:
    stage.model("Small")
    for key in ("nonsense", "wkr_x"):
        async with client_with(stage, key) as client:
            with pytest.raises(openai.AuthenticationError) as caught:
                await client.models.list()
            error: Any = caught.value.body
            assert error["code"] == "invalid_api_key"
    reading = make_key(stage.context, stage.owner.user_id, [Scope.READ, Scope.WRITE])
    async with client_with(stage, reading) as client:
        with pytest.raises(openai.PermissionDeniedError, match="inference"):
            await client.chat.completions.create(model="small", messages=HI)
    stranger = person(stage.app, stage.context, "other@example.org")
    async with client_with(stage, stranger.key) as client:
        assert [model async for model in await client.models.list()] == []
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="small", messages=HI)


async def test_unknown_paths_below_v1_answer_in_the_same_shape(stage: Stage) -> None:
    answer = await stage.call("GET", "/v1/assistants")
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "invalid_request_error"
    answer = await stage.call("DELETE", "/v1/models")
    assert answer.status_code == 405
    assert "error" in answer.json()


# --- leaving ----------------------------------------------------------------------------------


async def test_closing_a_stream_stops_the_agent(stage: Stage, client: openai.AsyncOpenAI) -> None:
    stage.model("Small")
    async with stage.agent(until_stopped) as agent:
        stream = await client.chat.completions.create(model="small", messages=HI, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        await agent.told_to_stop(agent.chats[0].chat_id)


async def test_giving_up_on_a_whole_answer_stops_the_agent(stage: Stage) -> None:
    stage.model("Small")
    async with stage.agent(until_stopped) as agent:
        async with client_with(stage, stage.owner.key) as client:
            with pytest.raises(openai.APITimeoutError):
                await client.chat.completions.create(model="small", messages=HI, timeout=0.5)
        await agent.told_to_stop(agent.chats[0].chat_id)
