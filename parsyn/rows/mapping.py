"""Which column holds which field of a shape, and the words a file uses for its roles.

A mapping is flat: a field of the shape, or one of `TURN_KEYS`, to the file's own word for it, e.g.
`{"messages": "conv", "role_key": "speaker", "content_key": "text", "user_role": "customer"}`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from parsyn.wire.states import SchemaKind

TURN_KEYS = (
    "role_key",
    "content_key",
    "system_role",
    "user_role",
    "assistant_role",
    "tool_role",
)

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "function_call": "function_call",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "function_response": "tool",
}
"""The names that need no mapping. A `function_call` turn becomes an assistant's tool call."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one `schema_kind`: any of the sets of `required`, and what may come with it."""

    required: tuple[frozenset[str], ...]
    optional: frozenset[str] = frozenset()

    @property
    def fields(self) -> frozenset[str]:
        return self.optional.union(*self.required)


def _shape(*required: str, optional: str = "") -> Shape:
    return Shape(tuple(frozenset(names.split()) for names in required), frozenset(optional.split()))


SHAPES: Mapping[SchemaKind, Shape] = {
    SchemaKind.MESSAGES: _shape("messages", optional="tools"),
    SchemaKind.SHAREGPT: _shape("conversations", optional="system tools"),
    SchemaKind.ALPACA: _shape("instruction output", optional="input system history"),
    SchemaKind.PROMPT_COMPLETION: _shape("prompt completion", optional="tools"),
    SchemaKind.TEXT: _shape("text"),
    SchemaKind.PREFERENCE: _shape(
        "chosen rejected", optional="prompt conversations messages system tools"
    ),
    SchemaKind.KTO: _shape(
        "prompt completion label",
        "messages label",
        "conversations label",
        optional="system tools",
    ),
    SchemaKind.PROMPT_ONLY: _shape("prompt", optional="tools"),
    SchemaKind.TOKENIZED: _shape("input_ids", optional="labels attention_mask"),
}


class BadMapping(Exception):
    """A mapping that cannot be applied; `key` is the entry at fault."""

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.key = key


@dataclass(frozen=True, slots=True)
class Plan:
    """How to turn this file's rows into examples."""

    schema_kind: SchemaKind
    columns: Mapping[str, str] = field(default_factory=dict)
    role_key: str | None = None
    content_key: str | None = None
    roles: Mapping[str, str] = field(default_factory=lambda: ROLES)

    def column(self, name: str) -> str:
        """The column that holds the field; without a mapping they have the same name."""
        return self.columns.get(name, name)


def plan_rows(
    schema_kind: SchemaKind | None,
    mapping: Mapping[str, str] | None,
    columns: Iterable[str] | None = None,
) -> Plan:
    """Raises `BadMapping` for unknown fields, columns that are not there, and shapes left open.

    Without `schema_kind` the fields of the mapping decide. `columns`, when known, are checked.
    """
    given = dict(mapping or {})
    fields = {key: value for key, value in given.items() if key not in TURN_KEYS}
    known = None if columns is None else list(columns)
    kind = schema_kind if schema_kind is not None else _kind_of(fields, known)
    if kind is SchemaKind.UNKNOWN:
        raise BadMapping("The columns fit no shape. Map them to the fields of a shape first.")
    _refuse_unknown_fields(kind, fields)
    if known is not None:
        _refuse_missing_columns(kind, fields, known)
    return Plan(kind, fields, given.get("role_key"), given.get("content_key"), _roles(given))


def _kind_of(fields: Mapping[str, str], columns: list[str] | None) -> SchemaKind:
    explicit = frozenset(fields)
    present = explicit | frozenset(columns or ())
    for reachable in (explicit, present):
        best = 0
        kind = SchemaKind.UNKNOWN
        for candidate, shape in SHAPES.items():
            size = max((len(need) for need in shape.required if need <= reachable), default=0)
            if explicit <= shape.fields and size > best:
                best, kind = size, candidate
        if kind is not SchemaKind.UNKNOWN:
            return kind
    raise BadMapping(
        "The mapping fits no shape: "
        + (", ".join(sorted(fields)) or "nothing")
        + ". Map, for example, prompt and completion, or messages."
    )


def _refuse_unknown_fields(kind: SchemaKind, fields: Mapping[str, str]) -> None:
    allowed = SHAPES[kind].fields
    for name in fields:
        if name not in allowed:
            near = difflib.get_close_matches(name, [*allowed, *TURN_KEYS], 1)
            hint = f' Did you mean "{near[0]}"?' if near else ""
            raise BadMapping(
                f'"{name}" is no field of {kind}; it has {", ".join(sorted(allowed))}.{hint}', name
            )


def _refuse_missing_columns(
    kind: SchemaKind, fields: Mapping[str, str], columns: list[str]
) -> None:
    for name, column in fields.items():
        if column not in columns:
            raise BadMapping(
                f'The file has no column "{column}"; it has {", ".join(columns[:20])}.', name
            )
    reachable = frozenset(fields) | frozenset(columns)
    options = SHAPES[kind].required
    if not any(need <= reachable for need in options):
        missing = min((need - reachable for need in options), key=len)
        raise BadMapping(
            f"{kind} also needs {', '.join(sorted(missing))}. Map {_them(missing)} to a column."
        )


def _them(names: frozenset[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _roles(given: Mapping[str, str]) -> Mapping[str, str]:
    own = {
        given[f"{role}_role"].casefold(): role
        for role in ("system", "user", "assistant", "tool")
        if f"{role}_role" in given
    }
    return {**ROLES, **own} if own else ROLES
