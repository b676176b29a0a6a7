"""`/v1`: the API that the official OpenAI clients speak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quart import Response

from parsyn.hub import openai_errors, sse
from parsyn.hub.answers import Answer
from parsyn.hub.chat import router_of
from parsyn.hub.hub import hub, principal
from parsyn.hub.openai_answers import ChatShape, CompletionShape, Shape
from parsyn.hub.routing import Api
from parsyn.services import inference
from parsyn.services.context import Context
from parsyn.services.inference import Target
from parsyn.services.principal import Principal
from parsyn.wire.api.openai import (
    ChatCompletionIn,
    CompletionIn,
    OpenAIIn,
    OpenAIModel,
    OpenAIModels,
)
from parsyn.wire.states import Scope

api = Api("openai", prefix="/v1")
api.blueprint.after_app_request(openai_errors.reshape)


@api.endpoint("GET", "/models", scope=Scope.INFERENCE, answers=OpenAIModels)
async def list_models() -> OpenAIModels:
    """The models that can answer."""
    named = await hub().context.database.read(inference.named_models, principal())
    return OpenAIModels(data=[_entry(name, model.created_at) for name, model in named])


@api.endpoint("GET", "/models/<path:name>", scope=Scope.INFERENCE, answers=OpenAIModel)
async def get_model(name: str) -> OpenAIModel:
    """One model, by slug, `ft:<base>:<name>` or id."""
    model = await hub().context.database.read(inference.find_by_name, principal(), name)
    return _entry(name, model.created_at)


def _entry(name: str, created_at: float) -> OpenAIModel:
    return OpenAIModel(id=name, created=int(created_at))


@api.endpoint("POST", "/chat/completions", scope=Scope.INFERENCE, body=ChatCompletionIn)
async def create_chat_completion(body: ChatCompletionIn) -> Response:
    """Answer a conversation, whole or as a stream of chunks."""
    messages = [message.as_turn() for message in body.messages]
    answer = await _open(body, messages, None)
    return await _respond(answer, body, ChatShape(answer.chat_id, body.model))


@api.endpoint("POST", "/completions", scope=Scope.INFERENCE, body=CompletionIn)
async def create_completion(body: CompletionIn) -> Response:
    """Continue a text, whole or as a stream of chunks."""
    answer = await _open(body, (), str(body.prompt))
    return await _respond(answer, body, CompletionShape(answer.chat_id, body.model))


async def _open(
    body: OpenAIIn, messages: Sequence[dict[str, Any]], raw_prompt: str | None
) -> Answer:
    body.check_offered()
    context = hub().context
    target = await context.database.read(_target, context, principal(), body.model)
    sampling = inference.merged(target.defaults, body.sampling())
    return await router_of(hub()).open(target, messages, sampling, raw_prompt)


def _target(context: Context, who: Principal, name: str) -> Target:
    return inference.target_for(context, who, inference.find_by_name(who, name))


async def _respond(answer: Answer, body: OpenAIIn, shape: Shape) -> Response:
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return sse.stream(_chunks(answer, shape, with_usage), [answer])
    try:
        end = await answer.ended()
    finally:
        answer.cancel()
    if end.error is not None:
        raise end.error
    whole = json.dumps(shape.whole(answer.text, end), ensure_ascii=False)
    return Response(whole, content_type="application/json")


async def _chunks(answer: Answer, shape: Shape, with_usage: bool) -> sse.Frames:
    yield shape.opening(with_usage)
    async for part in sse.frames([answer], lambda _, event: shape.render(event, with_usage)):
        yield part
