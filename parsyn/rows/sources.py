"""A source opened: its rows as examples under the user's mapping or the recognised shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from parsyn.rows.formats import Row, Sniffed, read_rows, sniff
from parsyn.rows.json_values import Values
from parsyn.rows.mapping import BadMapping, Plan, plan_rows
from parsyn.rows.messages import Example, normalise
from parsyn.rows.problems import BadRow, Limits, Problem, Severity, UnusableFile
from parsyn.rows.requests import Source
from parsyn.rows.shapes import SAMPLE_ROWS, Recognition, recognise
from parsyn.wire.states import SchemaKind

_SAMPLE_CHARACTERS = 32 << 20
_COLUMNS = 1000


@dataclass(slots=True)
class OpenSource:
    """`items` yields every row or problem, once. `plan` is None while a mapping is needed."""

    sniffed: Sniffed
    items: Iterator[Row | Problem]
    columns: list[str]
    recognition: Recognition
    plan: Plan | None


def open_source(source: Source) -> OpenSource:
    """Raises `UnusableFile` when nothing can be read, `BadMapping` when it does not fit."""
    limits = Limits(source.total_bytes, source.row_bytes)
    path = Path(source.path)
    sniffed = sniff(path, source.filename, limits)
    items = read_rows(path, sniffed, limits)
    head, samples = _sample(items)
    columns = columns_of(samples)
    plan: Plan | None
    if source.mapping or source.schema_kind not in (None, SchemaKind.UNKNOWN):
        kind = None if source.schema_kind is SchemaKind.UNKNOWN else source.schema_kind
        plan = plan_rows(kind, source.mapping, columns if samples else None)
        recognition = Recognition(plan.schema_kind, source.mapping)
    else:
        recognition = recognise(columns, samples)
        plan = _recognised_plan(recognition)
    return OpenSource(sniffed, chain(head, items), columns, recognition, plan)


def read_examples(source: Source) -> Iterator[Example]:
    """The usable rows, in file order; bad rows are left out.

    Raises what `open_source` does, `BadMapping` also while a mapping is needed, and
    `UnusableFile` where the file breaks off.
    """
    opened = open_source(source)
    if opened.plan is None:
        raise BadMapping(" ".join(opened.recognition.reasons))
    for item in opened.items:
        example = example_of(item, opened.plan) if isinstance(item, Row) else item
        if isinstance(example, Example):
            yield example
        elif example.severity is Severity.FILE:
            raise UnusableFile(example.code, example.message, row=example.row, line=example.line)


def example_of(row: Row, plan: Plan) -> Example | Problem:
    try:
        return normalise(row.values, plan)
    except BadRow as bad:
        return bad.at(row.number, row.line)


def columns_of(rows: list[Values]) -> list[str]:
    """Every column that occurs, in order of appearance."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return list(names)[:_COLUMNS]


def _recognised_plan(recognition: Recognition) -> Plan | None:
    if recognition.needs_mapping:
        return None
    return plan_rows(recognition.schema_kind, recognition.mapping)


def _sample(items: Iterator[Row | Problem]) -> tuple[list[Row | Problem], list[Values]]:
    head: list[Row | Problem] = []
    samples: list[Values] = []
    size = 0
    for item in items:
        head.append(item)
        if isinstance(item, Row):
            samples.append(item.values)
            size += sum(
                len(value) if isinstance(value, str) else len(repr(value))
                for value in item.values.values()
            )
        if (
            len(samples) >= SAMPLE_ROWS
            or len(head) >= 50 * SAMPLE_ROWS
            or size > _SAMPLE_CHARACTERS
        ):
            break
    return head, samples
