"""`/v1`: requests as OpenAI's clients send them, and the answers that they read.

What cannot change an answer here is taken and left aside; what would change it and is not offered
is refused with a sentence, so that nobody believes that it took effect.
"""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parsyn.errors import invalid
from parsyn.wire.api.chat import Prose, StopText

ASKS_NOTHING: dict[str, tuple[Any, ...] | None] = {
    **dict.fromkeys(
        (
            "metadata",
            "parallel_tool_calls",
            "prompt_cache_key",
            "prompt_cache_retention",
            "reasoning_effort",
            "safety_identifier",
            "service_tier",
            "store",
            "user",
            "verbosity",
        )
    ),
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "presence_penalty": (0,),
    "response_format": ({"type": "text"},),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "web_search_options": (),
}
"""OpenAI's names that are no fields here, with the values that ask for nothing (None: any)."""


class OpenAIIn(BaseModel):
    """Base of a request: sampling, streaming, and the names that OpenAI has besides."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    DEFAULT_MAX_TOKENS: ClassVar[int]

    model: str = Field(min_length=1, max_length=500)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=0, le=1000)
    max_tokens: int | None = Field(default=None, ge=1, le=32768)
    stop: list[StopText] | None = Field(default=None, max_length=8)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stream: bool = False
    stream_options: StreamOptions | None = None

    @field_validator("stop", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("stream", mode="before")
    @classmethod
    def _null_is_false(cls, value: Any) -> Any:
        return False if value is None else value

    def check_offered(self) -> None:
        """Raise a 422 at the parameter that asks for what is not offered, or is none."""
        for name, value in (self.model_extra or {}).items():
            if name not in ASKS_NOTHING:
                raise invalid([name], f"There is no parameter {name!r}.{_near(name, type(self))}")
            nothing = ASKS_NOTHING[name]
            if nothing is not None and value is not None and value not in nothing:
                raise invalid([name], f"{name} is not offered here; leave it out.")

    def sampling(self) -> dict[str, Any]:
        """The given values by their names in `Sampling`; top_p 0 is greedy.

        `max_tokens` is the class's where none is given.
        """
        names = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed")
        given = {name: getattr(self, name) for name in names}
        if self.max_tokens is None:
            given["max_tokens"] = self.DEFAULT_MAX_TOKENS
        if self.top_p == 0:
            given.update(top_p=None, temperature=0.0)
        return {name: value for name, value in given.items() if value is not None}


def _near(name: str, cls: type[BaseModel]) -> str:
    close = difflib.get_close_matches(name, [*cls.model_fields, *ASKS_NOTHING], n=1)
    return f" Did you mean {close[0]}?" if close else ""


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class OpenAIMessage(BaseModel):
    """`content` may come as text parts, which are joined."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant"]
    content: Prose

    @model_validator(mode="before")
    @classmethod
    def _no_tools(cls, value: Any) -> Any:
        if isinstance(value, dict) and (
            value.get("role") in ("tool", "function") or value.get("tool_calls")
        ):
            raise ValueError("Tool calls are not offered here; leave out what has to do with them.")
        return value

    @field_validator("content", mode="before")
    @classmethod
    def _join(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        texts = [part.get("text") if isinstance(part, dict) else None for part in value]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("Models here read text only; send text, or parts of type text.")
        return "".join(map(str, texts))

    def as_turn(self) -> dict[str, Any]:
        """Role and text as chat templates know them."""
        return {
            "role": "system" if self.role == "developer" else self.role,
            "content": self.content,
        }


class ChatCompletionIn(OpenAIIn):
    DEFAULT_MAX_TOKENS = 2048

    messages: list[OpenAIMessage] = Field(min_length=1, max_length=2000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=32768)

    def sampling(self) -> dict[str, Any]:
        given = super().sampling()
        if self.max_completion_tokens is not None:
            given["max_tokens"] = self.max_completion_tokens
        return given


class CompletionIn(OpenAIIn):
    """`prompt` is continued as it is, without the chat template."""

    DEFAULT_MAX_TOKENS = 16

    prompt: Prose = Field(min_length=1)

    @field_validator("prompt", mode="before")
    @classmethod
    def _one(cls, value: Any) -> Any:
        if isinstance(value, list):
            if len(value) != 1 or not isinstance(value[0], str):
                raise ValueError("Send one prompt a request, as text.")
            return value[0]
        return value


class OpenAIModel(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "parsyn"


class OpenAIModels(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]
