"""How a CSV file separates and quotes its cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_USUAL = (",", "\t", ";", "|")
_RARE = ("^", "~", "\x1f", "\x01", ":")


@dataclass(frozen=True, slots=True)
class Dialect:
    delimiter: str = ","
    quotechar: str = '"'
    escapechar: str | None = None

    def reader(self, lines: Iterable[str], *, strict: bool = True) -> Iterator[list[str]]:
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quotechar,
            escapechar=self.escapechar,
            doublequote=self.escapechar is None,
            strict=strict,
        )


PLAIN = Dialect()


def sniff_dialect(text: str, *, whole: bool = True) -> Dialect:
    """The dialect under which the first rows have the same number of cells, and the most.

    `text` is the file's beginning, or all of it when `whole`.
    """
    quotechar = _quotechar(text)
    best = Dialect(",", quotechar)
    best_score = 0.0
    for escapechar in (None, "\\") if f"\\{quotechar}" in text else (None,):
        for delimiter in (*_USUAL, *_RARE):
            dialect = Dialect(delimiter, quotechar, escapechar)
            width, share = _agreement(text, dialect, whole)
            score = share * (1.0 if delimiter in _USUAL else 0.5) + min(width, 20) / 1000
            if width > 1 and score > best_score:
                best, best_score = dialect, score
    return best


def columns_agree(text: str, *, whole: bool = True) -> bool:
    """Whether a text without a telling name is CSV: rows of two cells or more, all alike."""
    dialect = sniff_dialect(text, whole=whole)
    width, share = _agreement(text, dialect, whole)
    return width > 1 and share == 1.0 and dialect.delimiter in _USUAL and text.count("\n") > 1


def _quotechar(text: str) -> str:
    single = len(re.findall(r"(?:^|[,;\t|])'[^']*'(?=$|[,;\t|\r\n])", text[:65536], re.MULTILINE))
    double = len(re.findall(r'(?:^|[,;\t|])"', text[:65536], re.MULTILINE))
    return "'" if single > 1 and double == 0 else '"'


def _agreement(text: str, dialect: Dialect, whole: bool) -> tuple[int, float]:
    """The number of cells in the header, and the share of rows that have as many."""
    rows, broken = _first_rows(text, dialect, whole)
    widths = Counter(len(row) for row in rows if row)
    if not widths:
        return 0, 0.0
    header = next(iter(widths))
    return header, widths[header] / (widths.total() + broken)


def _first_rows(text: str, dialect: Dialect, whole: bool) -> tuple[list[list[str]], bool]:
    """Up to 50 rows, and whether the next one breaks the rules of quoting."""
    lines = [line + "\n" for line in text.split("\n")]
    if not whole and len(lines) > 1:
        del lines[-1]
    rows: list[list[str]] = []
    try:
        for row in dialect.reader(lines):
            rows.append(row)
            if len(rows) == 50:
                break
    except csv.Error as error:
        return rows, whole or "end of data" not in str(error)
    return rows, False
