"""The text that an example becomes, and the characters of it from which something is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from parsyn.rows.messages import Example
from parsyn.rows.problems import BadRow, ProblemCode
from parsyn.rows.template import ChatTemplate, Span, TemplateError, TemplateOrigin
from parsyn.rows.toolcalls import Tool
from parsyn.rows.turns import Message, is_trained
from parsyn.wire.states import SchemaKind

TrainOn = Literal["completions", "all", "last_turn"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """`spans` are trained, in characters. A `bare` text gets the tokenizer's BOS, and an EOS."""

    text: str
    spans: list[Span]
    bare: bool = False


class _Unaligned(Exception):
    """The rendering of a conversation's beginning is not the beginning of its rendering."""


def render_example(example: Example, template: ChatTemplate, train_on: TrainOn) -> Rendered:
    """Raises `BadRow` for a template that refuses the row or hides where its answers are."""
    if example.text is not None:
        return Rendered(example.text, [(0, len(example.text))], bare=True)
    if example.plain is not None and template.origin is TemplateOrigin.DEFAULT:
        return _render_plain(example.plain, train_on)
    messages = [*example.messages, *(example.chosen or [])]
    if example.kind is SchemaKind.PROMPT_ONLY:
        raise BadRow(ProblemCode.NO_ANSWER, "The row has a prompt but no answer to learn from.")
    try:
        return _render_chat(messages, example.tools, template, train_on)
    except TemplateError as error:
        raise BadRow(ProblemCode.TEMPLATE_FAILED, str(error)) from error


def _render_plain(plain: tuple[str, str], train_on: TrainOn) -> Rendered:
    prompt, completion = plain
    start = 0 if train_on == "all" else len(prompt)
    text = prompt + completion
    return Rendered(text, [(start, len(text))], bare=True)


def _render_chat(
    messages: Sequence[Message],
    tools: Sequence[Tool] | None,
    template: ChatTemplate,
    train_on: TrainOn,
) -> Rendered:
    messages, tools = template.fold(messages, tools)
    if train_on == "all":
        text = template.render(messages, tools)
        return Rendered(text, [(0, len(text))])
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    learnt = [place for place in answers if is_trained(messages[place])]
    if train_on == "last_turn":
        learnt = learnt[-1:]
    try:
        return _by_prefixes(messages, tools, template, learnt)
    except _Unaligned:
        if template.marks_generation:
            return _by_marks(messages, tools, template, answers, learnt)
    raise BadRow(
        ProblemCode.TEMPLATE_FAILED,
        "The chat template rewrites earlier turns, so the answers cannot be told from the rest. "
        "Train on the last turn or on everything, or mark the answers with {% generation %}.",
    )


def _by_marks(
    messages: Sequence[Message],
    tools: Sequence[Tool] | None,
    template: ChatTemplate,
    answers: list[int],
    learnt: list[int],
) -> Rendered:
    text, spans = template.render_marked(messages, tools)
    if len(spans) != len(answers):
        raise BadRow(
            ProblemCode.TEMPLATE_FAILED,
            f"The chat template marks {len(spans)} answers where the row has {len(answers)}.",
        )
    return Rendered(text, [spans[answers.index(place)] for place in learnt])


def _by_prefixes(
    messages: Sequence[Message],
    tools: Sequence[Tool] | None,
    template: ChatTemplate,
    learnt: list[int],
) -> Rendered:
    """An answer lies between the rendering up to it, ready to generate, and the one through it."""
    text = template.render(messages, tools)
    spans: list[Span] = []
    for place in learnt:
        start = _answer_start(messages[:place], tools, template, text)
        spans.append((start, _answer_end(messages, place, tools, template, text, start)))
    return Rendered(text, spans)


def _answer_start(
    before: Sequence[Message], tools: Sequence[Tool] | None, template: ChatTemplate, text: str
) -> int:
    try:
        ready = template.render(before, tools, add_generation_prompt=True)
        if text.startswith(ready):
            return len(ready)
        so_far = template.render(before, tools)
    except TemplateError:
        if before:
            raise
        raise _Unaligned from None
    # The generation prompt may open a thought that the written answer does not have.
    shared = _shared_length(text, ready)
    if not text.startswith(so_far) or shared <= len(so_far):
        raise _Unaligned
    return shared


def _answer_end(
    messages: Sequence[Message],
    place: int,
    tools: Sequence[Tool] | None,
    template: ChatTemplate,
    text: str,
    start: int,
) -> int:
    if place == len(messages) - 1:
        return len(text)
    through = template.render(messages[: place + 1], tools)
    if text.startswith(through) and len(through) > start:
        return len(through)
    # A template may treat a last answer in its own way (say, keep its thoughts): what follows the
    # words of the answer is the same all the same.
    words = messages[place]["content"].strip()
    tail = through[through.rfind(words) + len(words) :] if words in through else ""
    found = text.find(words, start)
    end = found + len(words)
    if not words or not tail.strip() or found < 0 or not text.startswith(tail, end):
        raise _Unaligned
    return end + len(tail)


def _shared_length(one: str, other: str) -> int:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))
