"""Rows of a CSV file: the first row names the columns, every cell is a string."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from parsyn.rows.dialects import Dialect
from parsyn.rows.json_rows import Numbered
from parsyn.rows.json_values import Values, refuse_wrong_bytes
from parsyn.rows.lines import BOM
from parsyn.rows.problems import BadRow, Limits, ProblemCode, UnusableFile


def read_csv(stream: io.BufferedReader, dialect: Dialect, limits: Limits) -> Iterator[Numbered]:
    """(row, first line of the row, cells by column or what is wrong), blank lines left out."""
    # The module's own limit of 131,072 is process-wide; `_Lines` bounds a row, cells included.
    csv.field_size_limit(max(csv.field_size_limit(), limits.row_bytes + 1))
    lines = _Lines(stream, dialect, limits.row_bytes)
    reader = dialect.reader(lines)
    for row in itertools.count(0):
        lines.row = row
        cells = _next_cells(reader, lines)
        if cells is None:
            return
        if row == 0:
            lines.columns = _header(cells)
        else:
            yield row, lines.first, _values(cells, lines.columns)


def _next_cells(reader: Iterator[list[str]], lines: _Lines) -> list[str] | BadRow | None:
    while True:
        lines.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return None
        except csv.Error as error:
            return _broken_quotes(error, lines)
        if cells:
            return cells


def _broken_quotes(error: csv.Error, lines: _Lines) -> BadRow:
    if lines.ended and "end of data" in str(error):
        raise UnusableFile(
            ProblemCode.UNCLOSED_QUOTE,
            "A quote that opens in this row never closes. Close it, or double quotes in a cell.",
            row=lines.row or None,
            line=lines.first,
            column=lines.open_column(),
        )
    return BadRow(
        ProblemCode.UNCLOSED_QUOTE,
        "A quoted cell is followed by more text. Double the quotes inside a cell.",
        lines.open_column(),
    )


def _header(cells: list[str] | BadRow) -> list[str]:
    try:
        if isinstance(cells, BadRow):
            raise cells
        refuse_wrong_bytes("".join(cells))
    except BadRow as bad:
        raise UnusableFile(bad.code, bad.message, line=1) from None
    names = [cell.strip() or f"column_{place}" for place, cell in enumerate(cells, 1)]
    for name in names:
        if names.count(name) > 1:
            raise UnusableFile(
                ProblemCode.BAD_HEADER,
                f'The header names the column "{name}" more than once. Give each its own name.',
                line=1,
                column=name,
            )
    return names


def _values(cells: list[str] | BadRow, columns: list[str]) -> Values | BadRow:
    if isinstance(cells, BadRow):
        return cells
    if len(cells) != len(columns):
        return BadRow(
            ProblemCode.WRONG_CELL_COUNT,
            f"The row has {len(cells)} cells where the header has {len(columns)}. "
            "Quote cells that hold the delimiter, or add the missing ones.",
        )
    for column, cell in zip(columns, cells, strict=True):
        if not cell.isascii() or "\0" in cell:
            try:
                _refuse_bytes(cell)
            except BadRow as bad:
                return BadRow(bad.code, bad.message, column)
    return dict(zip(columns, cells, strict=True))


def _refuse_bytes(cell: str) -> None:
    refuse_wrong_bytes(cell)
    if "\0" in cell:
        raise BadRow(ProblemCode.NUL_BYTE, "The cell holds a NUL byte. Remove it.")


class _Lines:
    """Feeds physical lines to the csv module and refuses a row that outgrows the limit."""

    def __init__(self, stream: io.BufferedReader, dialect: Dialect, limit: int) -> None:
        self._stream = stream
        self._dialect = dialect
        self._limit = limit
        self._line = 0
        self._row_bytes = 0
        self._opening = ""
        self.columns: list[str] = []
        self.row = 0
        self.first = 1
        self.ended = False

    def begin_row(self) -> None:
        self.first = self._line + 1
        self._row_bytes = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raw = self._stream.readline(self._limit + 1 - self._row_bytes)
        if not raw:
            self.ended = True
            raise StopIteration
        self._line += 1
        if self._line == 1:
            raw = raw.removeprefix(BOM)
        text = raw.decode("utf-8", "surrogateescape")
        if self._row_bytes == 0:
            self._opening = text[:65536]
        self._row_bytes += len(raw)
        if self._row_bytes > self._limit:
            raise self._too_large()
        return text

    def open_column(self) -> str | None:
        """The column in which the row's first line ends: where a cell that runs on was opened."""
        try:
            # Not strict: the open quote is the very thing we look at.
            cells = next(self._dialect.reader([self._opening], strict=False), [])
        except csv.Error:
            return None
        place = len(cells) - 1
        return self.columns[place] if 0 <= place < len(self.columns) else None

    def _too_large(self) -> UnusableFile:
        return UnusableFile(
            ProblemCode.ROW_TOO_LARGE,
            f"The row is larger than {self._limit:,} bytes: its last cell is huge, or a quote "
            "that opens in it never closes. Repair the row or leave it out.",
            row=self.row or None,
            line=self.first,
            column=self.open_column(),
        )
