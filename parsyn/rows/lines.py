"""Physical lines of a byte stream, numbered from 1, each within the row limit."""

from __future__ import annotations

import io
from collections.abc import Iterator

BOM = b"\xef\xbb\xbf"


def numbered_lines(stream: io.BufferedReader, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """(line, bytes with their newline); None for a line of more than `limit` bytes, skipped."""
    line = 0
    while raw := stream.readline(limit + 1):
        line += 1
        if line == 1:
            raw = raw.removeprefix(BOM)
        if len(raw) > limit and not raw.endswith(b"\n"):
            _skip_line(stream)
            yield line, None
        else:
            yield line, raw


def _skip_line(stream: io.BufferedReader) -> None:
    while piece := stream.readline(1 << 18):
        if piece.endswith(b"\n"):
            return
