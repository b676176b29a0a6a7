"""Some rows of a file to look at: raw, as messages, and as the tokens that a model would see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from parsyn.rows.formats import Row
from parsyn.rows.messages import Example
from parsyn.rows.problems import BadRow, Problem, Severity
from parsyn.rows.requests import (
    Preview,
    PreviewRequest,
    PreviewRow,
    RenderedChat,
    RenderRequest,
    ShownToken,
)
from parsyn.rows.sources import OpenSource, example_of, open_source
from parsyn.rows.template import TemplateOrigin, load_template
from parsyn.rows.tokens import RowEncoder, load_tokenizer
from parsyn.rows.turns import Message

_ROW_CHARACTERS = 60_000
_TOKENISED_CHARACTERS = 1 << 20
_TOKENS = 100_000
_TOKENS_A_ROW = 8_000


def preview(request: PreviewRequest) -> Preview:
    """Raises `UnusableFile`, `BadMapping`, `TemplateError`, `BadRow` (no tokenizer)."""
    source = open_source(request.source)
    items = islice(_rows(source), request.offset, request.offset + request.limit)
    if request.model_dir is None:
        return Preview([_show(item, source, None) for item in items])
    model = Path(request.model_dir)
    template = load_template(model)
    tokens = _Tokens(
        RowEncoder(load_tokenizer(model), template, request.train_on, request.max_length)
    )
    shown = [_show(item, source, tokens) for item in items]
    return Preview(shown, "model" if template.origin is TemplateOrigin.MODEL else "default")


def render(request: RenderRequest) -> RenderedChat:
    """Raises `TemplateError`."""
    template = load_template(Path(request.model_dir))
    messages = cast("list[Message]", request.messages)
    text = template.render(
        messages, request.tools, add_generation_prompt=request.add_generation_prompt
    )
    return RenderedChat(text, "model" if template.origin is TemplateOrigin.MODEL else "default")


def _rows(source: OpenSource) -> Iterator[Row | Problem]:
    """The rows, good and bad; problems of the file as a whole have no row to show."""
    return (
        item
        for item in source.items
        if isinstance(item, Row) or (item.severity is Severity.ROW and item.row is not None)
    )


def _show(item: Row | Problem, source: OpenSource, tokens: _Tokens | None) -> PreviewRow:
    if isinstance(item, Problem):
        return PreviewRow(item.row or 0, item.line, problem=item.message)
    shown = PreviewRow(item.number, item.line, raw=_clip(item.values))
    if source.plan is None:
        return shown
    example = example_of(item, source.plan)
    if isinstance(example, Problem):
        return replace(shown, problem=example.message)
    shown = replace(
        shown,
        messages=_clip(example.messages) if example.messages else None,
        tools=_clip(example.tools),
        chosen=_clip(example.chosen),
        rejected=_clip(example.rejected),
        label=example.label,
        text=_clip(example.text),
    )
    return shown if tokens is None else tokens.add_to(shown, example)


class _Tokens:
    """Adds tokens to rows that are not huge, until there are as many as a page can show."""

    def __init__(self, encoder: RowEncoder) -> None:
        self._encoder = encoder
        self._left = _TOKENS

    def add_to(self, shown: PreviewRow, example: Example) -> PreviewRow:
        if self._left <= 0 or _size(example) > _TOKENISED_CHARACTERS:
            return shown
        try:
            rendered, tokens = self._encoder.preview(example)
        except BadRow as bad:
            return replace(shown, problem=bad.message)
        tokens = tokens[: min(self._left, _TOKENS_A_ROW)]
        self._left -= len(tokens)
        return replace(
            shown,
            rendered=_clip(rendered),
            tokens=[ShownToken(**asdict(token)) for token in tokens],
        )


def _size(example: Example) -> int:
    turns = [*example.messages, *(example.chosen or [])]
    return len(example.text or "") + sum(len(turn["content"]) for turn in turns)


def _clip(value: Any) -> Any:
    """The value with at most `_ROW_CHARACTERS` characters of text in it."""
    return _Clipper(_ROW_CHARACTERS).clip(value)


class _Clipper:
    def __init__(self, characters: int) -> None:
        self._left = characters

    def clip(self, value: Any) -> Any:
        self._left -= 4
        if isinstance(value, str):
            kept = value[: max(0, self._left)]
            self._left -= len(kept)
            return value if len(kept) == len(value) else kept + "…"
        if isinstance(value, dict):
            return {self.clip(key): self.clip(inner) for key, inner in self._within(value.items())}
        if isinstance(value, list):
            return [self.clip(inner) for inner in self._within(value)]
        return value

    def _within(self, items: Any) -> Iterator[Any]:
        for item in items:
            if self._left <= 0:
                return
            yield item
