"""The jinja2 environment of chat templates: what they may use, and how much of it.

Settings, filters and globals are those that templates on model hubs are written for
(transformers, "Chat templates" in its documentation). Time is bounded by whoever renders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

_LARGEST = 1 << 20


class TemplateTooLarge(Exception):
    """A template that asks for more than a chat can need."""


class Marks:
    """The pieces rendered so far, and the spans that the template marks as generated."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.spans: list[tuple[int, int]] = []

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)

    def text(self) -> str:
        return "".join(self._pieces)


class _Generation(Extension):
    """`{% generation %} … {% endgeneration %}`: what is inside is what the assistant says."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_mark")
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _mark(self, caller: Macro) -> str:
        said = str(caller())
        marks = getattr(self.environment, "marks", None)
        if isinstance(marks, Marks):
            marks.spans.append((marks.length, marks.length + len(said)))
        return said


class SandboxedEnvironment(ImmutableSandboxedEnvironment):
    """One for each template; not shared between threads while rendering."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        self.marks: Marks | None = None
        self.filters["tojson"] = _tojson
        self.filters["format"] = _format
        self.filters["center"] = _center
        self.filters["indent"] = _indent
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = lambda pattern: now().strftime(pattern)
        self.globals["namespace"] = _Namespace
        self.globals["dict"] = _plain_dict

    @contextmanager
    def marking(self, marks: Marks) -> Iterator[None]:
        self.marks = marks
        try:
            yield
        finally:
            self.marks = None

    def call_binop(
        self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any
    ) -> Any:
        if operator == "*":
            _refuse_repetition(left, right)
            _refuse_repetition(right, left)
        elif operator == "**" and isinstance(right, int | float) and abs(right) > 64:
            raise TemplateTooLarge("it raises a number to a huge power")
        elif operator == "%" and isinstance(left, str):
            _refuse_wide_format(left)
        return super().call_binop(context, operator, left, right)


class _Namespace(Namespace):
    """A `namespace()` that stores no name with a leading underscore."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = dict(*args, **kwargs)
        for name in names:
            _refuse_private(name)
        super().__init__(names)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot hold {name!r}")


def _plain_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _refuse_repetition(value: Any, times: Any) -> None:
    is_sequence = isinstance(value, str | list | tuple)
    if is_sequence and isinstance(times, int) and len(value) * times > _LARGEST:
        raise TemplateTooLarge("it repeats a text too many times")


def _refuse_wide_format(pattern: str) -> None:
    if re.search(r"%[^%a-zA-Z]*(?:\d{4}|\*)", pattern):
        raise TemplateTooLarge("it formats text into too wide a field")


def _format(value: str, *args: Any, **kwargs: Any) -> str:
    _refuse_wide_format(str(value))
    return jinja2.filters.do_format(value, *args, **kwargs)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own escapes HTML, which models have never seen.
    if isinstance(indent, int) and indent > 64:
        raise TemplateTooLarge("it indents JSON too far")
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _center(value: str, width: int = 80) -> str:
    if width > _LARGEST:
        raise TemplateTooLarge("it centres a text in too wide a field")
    return str(value).center(width)


def _indent(value: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if (len(width) if isinstance(width, str) else width) > 64:
        raise TemplateTooLarge("it indents a text too far")
    return jinja2.filters.do_indent(value, width, first, blank)
