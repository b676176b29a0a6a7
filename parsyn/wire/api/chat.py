"""Conversations, and the sampling parameters of an answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from parsyn.wire.api.base import In, Name, Out, Time
from parsyn.wire.worker import Timings, Usage


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("The text holds a NUL character; remove it.")
    return text


Prose = Annotated[
    str,
    StringConstraints(strip_whitespace=False, max_length=1_000_000),
    AfterValidator(_storable),
]
"""What a person or a model wrote: white space counts, NUL cannot be stored."""
StopText = Annotated[str, StringConstraints(strip_whitespace=False, min_length=1, max_length=200)]


class SamplingIn(In):
    """Absent values take the model's own defaults, else ours. Temperature 0 is greedy."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=0, le=1000)
    max_tokens: int | None = Field(default=None, ge=1, le=32768)
    stop: list[StopText] | None = Field(default=None, max_length=8)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)


class ConversationIn(In):
    model_id: int
    title: Name | None = None
    system_prompt: Prose | None = Field(default=None, max_length=100_000)
    params: SamplingIn = SamplingIn()
    project_id: int | None = None


class ConversationPatch(In):
    model_id: int | None = None
    title: Name | None = None
    system_prompt: Prose | None = Field(default=None, max_length=100_000)
    params: SamplingIn | None = None


class MessageIn(In):
    """A question, asked after the message `parent_id` (null: as the first one), so that what came
    there before stays as another version; without `parent_id` the newest branch goes on.

    With `regenerate` there is no `content`: the last question up to `parent_id` is answered once
    more, beside its other answers.
    """

    content: Prose | None = None
    params: SamplingIn = SamplingIn()
    regenerate: bool = False
    parent_id: int | None = None


class MessagePatch(In):
    """What a reader thinks of an answer: 1 good, -1 bad, null nothing."""

    rating: Literal[1, -1] | None


class MessageOut(Out):
    id: int
    role: Literal["system", "user", "assistant"]
    content: str
    model_id: int | None
    worker_name: str | None
    finish_reason: str | None
    usage: Usage | None
    timings: Timings | None
    parent_id: int | None
    rating: Literal[1, -1] | None
    created_at: Time


class ConversationOut(Out):
    id: int
    project_id: int
    user_id: int
    model_id: int | None
    title: str
    system_prompt: str | None
    params: SamplingIn
    created_at: Time
    updated_at: Time


class ConversationDetail(ConversationOut):
    messages: list[MessageOut]


class TokenEvent(Out):
    """SSE `token`."""

    text: str


class PhaseEvent(Out):
    """SSE `phase`, before the first token. `about_seconds` is how long loading took before."""

    phase: Literal["waiting", "downloading", "loading", "generating"]
    done: int | None = None
    total: int | None = None
    worker_name: str | None = None
    about_seconds: float | None = None


class DoneEvent(Out):
    """SSE `done`, the last of a good stream."""

    message_id: int | None
    finish_reason: str
    usage: Usage
    timings: Timings
    worker_name: str | None = None


class ChatTurn(In):
    role: Literal["system", "user", "assistant"]
    content: Prose


class CompareIn(In):
    """Both models get the same messages; the events of the answer carry `side`, "a" or "b".

    Where a talk goes on, `messages_b` has the second one's own answers in it.
    """

    model_ids: list[int] = Field(min_length=2, max_length=2)
    messages: list[ChatTurn] = Field(min_length=1, max_length=1000)
    messages_b: list[ChatTurn] | None = Field(default=None, min_length=1, max_length=1000)
    params: SamplingIn = SamplingIn()
