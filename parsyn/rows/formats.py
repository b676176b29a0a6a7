"""Reads any accepted file as a stream of rows and problems, with flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from parsyn.rows.csv_rows import read_csv
from parsyn.rows.json_rows import Numbered, read_json, read_jsonl
from parsyn.rows.json_values import Values
from parsyn.rows.parquet_rows import read_parquet
from parsyn.rows.problems import BadRow, Limits, Problem, UnusableFile
from parsyn.rows.sniff import Sniffed, sniff
from parsyn.rows.streams import open_stream
from parsyn.rows.text_rows import read_text
from parsyn.wire.states import FileFormat

__all__ = ["Row", "Sniffed", "read_file", "read_rows", "sniff"]


@dataclass(frozen=True, slots=True)
class Row:
    """One readable row: `number` and `line` count from 1; Parquet rows have no line."""

    number: int
    line: int | None
    values: Values


def read_rows(
    path: Path, sniffed: Sniffed, limits: Limits | None = None
) -> Iterator[Row | Problem]:
    """Every row in file order. A problem of severity `file` is the last thing that comes."""
    try:
        for number, line, values in _numbered(path, sniffed, limits or Limits()):
            if isinstance(values, BadRow):
                yield values.at(number, line)
            else:
                yield Row(number, line, values)
    except UnusableFile as unusable:
        yield unusable.problem


def read_file(path: Path, filename: str, limits: Limits | None = None) -> Iterator[Row | Problem]:
    """Sniffs and reads in one go; warnings about the file's name are left out."""
    try:
        sniffed = sniff(path, filename, limits)
    except UnusableFile as unusable:
        yield unusable.problem
        return
    yield from read_rows(path, sniffed, limits)


def _numbered(path: Path, sniffed: Sniffed, limits: Limits) -> Iterator[Numbered]:
    if sniffed.file_format is FileFormat.PARQUET:
        yield from read_parquet(path, sniffed.compression, limits)
        return
    with open_stream(path, sniffed.compression, limits) as stream:
        match sniffed.file_format:
            case FileFormat.JSONL:
                yield from read_jsonl(stream, limits)
            case FileFormat.JSON:
                yield from read_json(stream, limits)
            case FileFormat.CSV:
                yield from read_csv(stream, sniffed.dialect, limits)
            case FileFormat.TEXT:
                yield from read_text(stream, sniffed.paragraphs, limits)
