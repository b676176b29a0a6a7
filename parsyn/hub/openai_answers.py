"""Answers in the shapes of OpenAI's chat and text completions."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from parsyn.hub import sse
from parsyn.hub.answers import AnswerEvent, End, Piece
from parsyn.hub.openai_errors import body_of
from parsyn.wire.worker import Usage

DONE = "[DONE]"


class Shape(ABC):
    """One answer's envelope; `model` is the name under which it was asked for."""

    prefix: ClassVar[str]
    whole_object: ClassVar[str]
    chunk_object: ClassVar[str]

    def __init__(self, chat_id: str, model: str) -> None:
        self.id = f"{self.prefix}-{chat_id}"
        self.model = model
        self.created = int(time.time())

    @abstractmethod
    def whole_choice(self, text: str, reason: str) -> dict[str, Any]: ...

    @abstractmethod
    def piece_choice(self, text: str) -> dict[str, Any]: ...

    @abstractmethod
    def last_choice(self, reason: str) -> dict[str, Any]: ...

    @abstractmethod
    def first_choice(self) -> dict[str, Any] | None: ...

    def whole(self, text: str, end: End) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        choice = self.whole_choice(text, _reason(end))
        return {**self._envelope(self.whole_object, [choice]), "usage": _usage(end.usage)}

    def opening(self, with_usage: bool) -> bytes:
        """What comes before the first piece, nothing where the shape has no such chunk."""
        choice = self.first_choice()
        return b"" if choice is None else self._chunk([choice], with_usage)

    def render(self, event: AnswerEvent, with_usage: bool) -> bytes | None:
        """The frames of one event; phases are nothing that OpenAI's clients know."""
        if isinstance(event, Piece):
            return self._chunk([self.piece_choice(event.text)], with_usage)
        if isinstance(event, End):
            return self._closing(event, with_usage)
        return None

    def _closing(self, end: End, with_usage: bool) -> bytes:
        if end.error is not None:
            return sse.frame(body_of(end.error.as_problem()))
        frames = [self._chunk([self.last_choice(_reason(end))], with_usage)]
        if with_usage:
            usage = {**self._envelope(self.chunk_object, []), "usage": _usage(end.usage)}
            frames.append(sse.frame(usage))
        return b"".join([*frames, sse.frame(DONE)])

    def _chunk(self, choices: list[dict[str, Any]], with_usage: bool) -> bytes:
        # With include_usage every chunk but the last says `"usage": null`.
        extra = {"usage": None} if with_usage else {}
        return sse.frame({**self._envelope(self.chunk_object, choices), **extra})

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


class ChatShape(Shape):
    prefix = "chatcmpl"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def whole_choice(self, text: str, reason: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}

    def first_choice(self) -> dict[str, Any]:
        return _delta({"role": "assistant", "content": ""}, None)

    def piece_choice(self, text: str) -> dict[str, Any]:
        return _delta({"content": text}, None)

    def last_choice(self, reason: str) -> dict[str, Any]:
        return _delta({}, reason)


class CompletionShape(Shape):
    prefix = "cmpl"
    whole_object = "text_completion"
    chunk_object = "text_completion"

    def whole_choice(self, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}

    def first_choice(self) -> None:
        return None

    def piece_choice(self, text: str) -> dict[str, Any]:
        return self.whole_choice(text, None)

    def last_choice(self, reason: str) -> dict[str, Any]:
        return self.whole_choice("", reason)


def _delta(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _reason(end: End) -> str:
    """OpenAI's word: an answer that its worker cut short ended like any that stopped."""
    return "length" if end.finish_reason == "length" else "stop"


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
