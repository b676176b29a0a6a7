"""Chat templates: where a model keeps its own, and rendering one as transformers would, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from parsyn.rows.sandbox import Marks, SandboxedEnvironment, TemplateTooLarge
from parsyn.rows.toolcalls import Tool
from parsyn.rows.turns import Message

Span = tuple[int, int]

OUTPUT_CHARACTERS = 16 << 20
_SOURCE_BYTES = 1 << 20
_CONFIG_BYTES = 32 << 20
_TOKEN_NAMES = (
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
)  # fmt: skip

DEFAULT_TEMPLATE = """\
{%- set end = eos_token or '<|im_end|>' -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + end + '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""
"""ChatML whose turns end with the model's own end of text, where a fine-tuned model then stops."""


class TemplateOrigin(StrEnum):
    """`model`: the model came with it. `default`: a base model without one got ours."""

    MODEL = "model"
    DEFAULT = "default"


class TemplateError(Exception):
    """A template that cannot be read, compiled or rendered; the message says why."""


@dataclass(frozen=True)
class ChatTemplate:
    """One template with the special tokens that it may name. Rendering is pure but for `now`."""

    source: str
    origin: TemplateOrigin = TemplateOrigin.MODEL
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], datetime] = field(default=lambda: datetime.now().astimezone())

    @property
    def marks_generation(self) -> bool:
        """Whether the template itself says what the assistant generates."""
        return re.search(r"\{%-?\s*generation\s*-?%\}", self.source) is not None

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None = None,
        *,
        add_generation_prompt: bool = False,
    ) -> str:
        """Raises `TemplateError`."""
        return self._render(messages, tools, add_generation_prompt, None)

    def render_marked(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None = None
    ) -> tuple[str, list[Span]]:
        """The text, and the character spans of its `{% generation %}` blocks."""
        marks = Marks()
        text = self._render(messages, tools, False, marks)
        return text, marks.spans

    def _render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] | None,
        add_generation_prompt: bool,
        marks: Marks | None,
    ) -> str:
        spoken, offered = self.fold(messages, tools)
        marks = marks or Marks()
        try:
            with self._environment.marking(marks):
                for piece in self._compiled.generate(
                    **self.special_tokens,
                    messages=[_with_thinking(message) for message in spoken],
                    tools=offered,
                    documents=None,
                    add_generation_prompt=add_generation_prompt,
                ):
                    marks.add(piece)
                    if marks.length > OUTPUT_CHARACTERS:
                        raise TemplateTooLarge("its output is too long")
        except (jinja2.TemplateError, TemplateTooLarge) as error:
            raise TemplateError(f"The chat template refused this row: {_line(error)}.") from error
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise TemplateError(
                f"The chat template failed on this row: {type(error).__name__}: {_line(error)}."
            ) from error
        return marks.text()

    def fold(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None
    ) -> tuple[list[Message], Sequence[Tool] | None]:
        """Writes tools and calls as text where the template would drop them in silence.

        Rendering does it too; doing it once before many renderings of one row saves time.
        """
        folded = list(messages)
        if not self._writes_calls:
            folded = [_calls_as_text(message) for message in folded]
        if tools and not self._writes_tools:
            return _tools_as_text(folded, tools), None
        return folded, tools or None

    @cached_property
    def _writes_calls(self) -> bool:
        return "tool_calls" in self.source

    @cached_property
    def _writes_tools(self) -> bool:
        tree = self._environment.parse(self.source)
        return "tools" in jinja2.meta.find_undeclared_variables(tree)

    @cached_property
    def _environment(self) -> SandboxedEnvironment:
        return SandboxedEnvironment(self.now)

    @cached_property
    def _compiled(self) -> jinja2.Template:
        try:
            return self._environment.from_string(self.source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise TemplateError(f"The chat template is not valid: {_line(error)}.") from error


def _line(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= 300 else text[:300] + "…"


def _with_thinking(message: Message) -> dict[str, Any]:
    """Some templates call the reasoning `thinking`."""
    fields: dict[str, Any] = dict(message)
    if "reasoning_content" in fields:
        fields["thinking"] = fields["reasoning_content"]
    return fields


def _calls_as_text(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    written = [
        "<tool_call>\n" + json.dumps(call["function"], ensure_ascii=False) + "\n</tool_call>"
        for call in calls
    ]
    content = "\n".join([message["content"], *written] if message["content"] else written)
    folded: Message = {**message, "content": content}
    del folded["tool_calls"]
    return folded


def _tools_as_text(messages: list[Message], tools: Sequence[Tool]) -> list[Message]:
    schemas = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    offer = (
        f"You may call these functions:\n<tools>\n{schemas}\n</tools>\n"
        'Call one with <tool_call>{"name": …, "arguments": {…}}</tool_call>.'
    )
    if messages and messages[0]["role"] == "system":
        first = messages[0]
        return [{**first, "content": f"{first['content']}\n\n{offer}"}, *messages[1:]]
    return [{"role": "system", "content": offer}, *messages]


def load_template(model_dir: Path) -> ChatTemplate:
    """The model's template: `chat_template.jinja`, else of `tokenizer_config.json`, else ChatML."""
    config = _read_json(model_dir / "tokenizer_config.json")
    tokens = special_tokens(model_dir)
    path = model_dir / "chat_template.jinja"
    if path.is_file():
        source = _read_text(path, _SOURCE_BYTES)
    else:
        source = _configured(config.get("chat_template"))
    if not source.strip():
        return ChatTemplate(DEFAULT_TEMPLATE, TemplateOrigin.DEFAULT, tokens)
    return ChatTemplate(source, TemplateOrigin.MODEL, tokens)


def special_tokens(model_dir: Path) -> dict[str, str]:
    """The named special tokens of a model folder, e.g. `{"eos_token": "<|im_end|>"}`."""
    sources = [
        _read_json(model_dir / "special_tokens_map.json"),
        _read_json(model_dir / "tokenizer_config.json"),
    ]
    tokens = {}
    for name in _TOKEN_NAMES:
        for source in sources:
            value = source.get(name)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                tokens[name] = text
    return tokens


def _configured(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        template = named.get("default")
        return template if isinstance(template, str) else ""
    return ""


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(_read_text(path, _CONFIG_BYTES))
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"{path.name} of the model is not valid JSON.") from error
    return value if isinstance(value, dict) else {}


def _read_text(path: Path, limit: int) -> str:
    with path.open("rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise TemplateError(f"{path.name} of the model is larger than {limit:,} bytes.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path.name} of the model is not UTF-8.") from error
