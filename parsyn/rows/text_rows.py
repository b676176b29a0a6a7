"""Rows of plain text: paragraphs where blank lines separate them, else one row a line."""

from __future__ import annotations

import io
from collections.abc import Iterator

from parsyn.rows.json_rows import Numbered, row_too_large
from parsyn.rows.json_values import Values, refuse_wrong_bytes
from parsyn.rows.lines import numbered_lines
from parsyn.rows.problems import BadRow, Limits, ProblemCode


def read_text(stream: io.BufferedReader, paragraphs: bool, limits: Limits) -> Iterator[Numbered]:
    """(row, first line, {"text": …} or what is wrong)."""
    blocks = _paragraphs(stream, limits) if paragraphs else _lines(stream, limits)
    for row, (line, text) in enumerate(blocks, 1):
        yield row, line, _values(text, limits)


def _lines(stream: io.BufferedReader, limits: Limits) -> Iterator[tuple[int, str | None]]:
    for line, raw in numbered_lines(stream, limits.row_bytes):
        if raw is None or raw.strip():
            yield line, _decoded(raw)


def _paragraphs(stream: io.BufferedReader, limits: Limits) -> Iterator[tuple[int, str | None]]:
    block: list[str | None] = []
    first, size = 1, 0
    for line, raw in numbered_lines(stream, limits.row_bytes):
        if raw is not None and not raw.strip():
            if block:
                yield first, _joined(block, size, limits)
            block, size = [], 0
            continue
        if not block:
            first = line
        size += limits.row_bytes + 1 if raw is None else len(raw)
        # What is beyond the limit will not be shown, so it is not kept either.
        block.append(_decoded(raw) if size <= limits.row_bytes else None)
    if block:
        yield first, _joined(block, size, limits)


def _joined(block: list[str | None], size: int, limits: Limits) -> str | None:
    return None if size > limits.row_bytes else "\n".join(line or "" for line in block)


def _decoded(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", "surrogateescape").rstrip("\r\n")


def _values(text: str | None, limits: Limits) -> Values | BadRow:
    if text is None:
        return row_too_large(limits.row_bytes)
    try:
        refuse_wrong_bytes(text)
    except BadRow as bad:
        return bad
    if "\0" in text:
        return BadRow(ProblemCode.NUL_BYTE, "The text holds a NUL byte. Remove it.", "text")
    return {"text": text}
