"""`/conversations` and `/compare`."""

from __future__ import annotations

import asyncio
from typing import Any

from quart import Response, request

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub import sse
from parsyn.hub.answers import Answer, AnswerEvent, End, Piece
from parsyn.hub.chat import router_of
from parsyn.hub.conversing import KeptAnswer, conversing
from parsyn.hub.hub import hub, principal
from parsyn.hub.routing import Api, integer, paging
from parsyn.services import conversations, inference
from parsyn.wire.api.base import Page
from parsyn.wire.api.chat import (
    CompareIn,
    ConversationDetail,
    ConversationIn,
    ConversationOut,
    ConversationPatch,
    DoneEvent,
    MessageIn,
    MessageOut,
    MessagePatch,
    PhaseEvent,
    TokenEvent,
)
from parsyn.wire.states import FailureReason, Scope

api = Api("conversations")
SIDES = ("a", "b")


@api.endpoint("GET", "/conversations", scope=Scope.READ, answers=Page[ConversationOut])
async def list_conversations() -> dict[str, Any]:
    """List conversations, the last used first; `?model_id=` narrows."""
    limit, offset = paging()
    model_id = integer("model_id", 0, 1, 2**31 - 1) if "model_id" in request.args else None
    return await hub().context.database.read(
        conversations.page, principal(), model_id, limit, offset
    )


@api.endpoint(
    "POST",
    "/conversations",
    scope=Scope.WRITE,
    body=ConversationIn,
    answers=ConversationOut,
    status=201,
    idempotent=True,
)
async def create_conversation(body: ConversationIn) -> dict[str, Any]:
    """Begin a conversation with a model."""
    context = hub().context
    return await context.database.write(conversations.create, context, principal(), body)


@api.endpoint(
    "GET",
    "/conversations/<int:conversation_id>",
    scope=Scope.READ,
    answers=ConversationDetail,
)
async def get_conversation(conversation_id: int) -> dict[str, Any]:
    """A conversation with its messages."""
    return await hub().context.database.read(conversations.detail, principal(), conversation_id)


@api.endpoint(
    "PATCH",
    "/conversations/<int:conversation_id>",
    scope=Scope.WRITE,
    body=ConversationPatch,
    answers=ConversationOut,
)
async def change_conversation(conversation_id: int, body: ConversationPatch) -> dict[str, Any]:
    """Change a conversation's model, title, system prompt or parameters."""
    return await hub().context.database.write(
        conversations.change, principal(), conversation_id, body
    )


@api.endpoint("DELETE", "/conversations/<int:conversation_id>", scope=Scope.WRITE)
async def delete_conversation(conversation_id: int) -> None:
    """Delete a conversation with its messages; an answer under way is stopped."""
    await hub().context.database.write(conversations.delete, principal(), conversation_id)
    conversing(hub()).stop(conversation_id)


@api.endpoint(
    "POST",
    "/conversations/<int:conversation_id>/messages",
    scope=Scope.INFERENCE,
    body=MessageIn,
)
async def send_message(conversation_id: int, body: MessageIn) -> Response:
    """Ask, and stream the answer (Server-Sent Events: phase, token, done, error)."""
    kept = await conversing(hub()).ask(principal(), conversation_id, body)
    return sse.stream(_frames(kept), [kept.answer])


@api.endpoint(
    "PATCH",
    "/conversations/<int:conversation_id>/messages/<int:message_id>",
    scope=Scope.INFERENCE,
    body=MessagePatch,
    answers=MessageOut,
)
async def rate_message(conversation_id: int, message_id: int, body: MessagePatch) -> dict[str, Any]:
    """Say whether an answer is good or bad."""
    return await hub().context.database.write(
        conversations.rate, principal(), conversation_id, message_id, body.rating
    )


async def _frames(kept: KeptAnswer) -> sse.Frames:
    async for part in sse.frames([kept.answer], lambda _, event: _render(event)):
        yield part
    try:
        message_id = await asyncio.shield(kept.stored)
    except Exception:
        error = ParsynError(ErrorCode.UNAVAILABLE, "The answer could not be stored; copy it.")
        yield sse.frame(error.as_problem(), "error")
    else:
        yield _last(kept.answer, message_id)


def _render(event: AnswerEvent) -> bytes | None:
    if isinstance(event, End):
        return None
    if isinstance(event, Piece):
        return sse.frame(TokenEvent(text=event.text).model_dump(), "token")
    return sse.frame(event.model_dump(exclude_none=True), "phase")


def _last(answer: Answer, message_id: int | None) -> bytes:
    end = answer.end or End(FailureReason.INTERNAL)
    if end.error is not None:
        return sse.frame(end.error.as_problem(), "error")
    return sse.frame(_done(answer, end, message_id), "done")


def _done(answer: Answer, end: End, message_id: int | None) -> dict[str, Any]:
    return DoneEvent(
        message_id=message_id,
        finish_reason=end.finish_reason,
        usage=end.usage,
        timings=end.timings,
        worker_name=answer.worker_name,
    ).model_dump()


def _render_side(side: str, answer: Answer, event: AnswerEvent) -> bytes:
    """As in a conversation, with `side` in the data (of an error: beside the problem's fields)."""
    if isinstance(event, Piece):
        return sse.frame({"side": side, "text": event.text}, "token")
    if isinstance(event, PhaseEvent):
        return sse.frame({"side": side, **event.model_dump(exclude_none=True)}, "phase")
    if event.error is not None:
        return sse.frame({"side": side, **event.error.as_problem()}, "error")
    return sse.frame({"side": side, **_done(answer, event, None)}, "done")


@api.endpoint("POST", "/compare", scope=Scope.INFERENCE, body=CompareIn)
async def compare(body: CompareIn) -> Response:
    """Ask two models the same, and stream both answers; every event names its `side`, a or b."""
    answers = await _open_both(body)

    def render(index: int, event: AnswerEvent) -> bytes:
        return _render_side(SIDES[index], answers[index], event)

    return sse.stream(sse.frames(answers, render), answers)


async def _open_both(body: CompareIn) -> list[Answer]:
    router = router_of(hub())
    context = hub().context
    targets = await context.database.read(
        inference.targets_of, context, principal(), body.model_ids, "model_ids"
    )
    for target in targets:
        await router.pick(target)
    both = (body.messages, body.messages_b or body.messages)
    answers: list[Answer] = []
    try:
        for target, side in zip(targets, both, strict=True):
            messages = [turn.model_dump() for turn in side]
            sampling = inference.merged(target.defaults, body.params.model_dump())
            answers.append(await router.open(target, messages, sampling))
    except BaseException:
        for answer in answers:
            answer.cancel()
        raise
    return answers
