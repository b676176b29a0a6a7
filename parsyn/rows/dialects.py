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


def sniff_dialect(text: str) -> Dialect:
    """The delimiter under which the first rows have the same number of cells, and the most."""
    quotechar = _quotechar(text)
    escapechar = (
        "\\" if re.search(r'[^\\"]\\"[^"]', text) and not re.search(r'\w""', text) else None
    )
    best = Dialect(",", quotechar, escapechar)
    best_score = 0.0
    for delimiter in (*_USUAL, *_RARE):
        dialect = Dialect(delimiter, quotechar, escapechar)
        width, share = _agreement(text, dialect)
        score = share * (1.0 if delimiter in _USUAL else 0.5) + min(width, 20) / 1000
        if width > 1 and score > best_score:
            best, best_score = dialect, score
    return best


def columns_agree(text: str) -> bool:
    """Whether a text without a telling name is CSV: rows of two cells or more, all alike."""
    dialect = sniff_dialect(text)
    width, share = _agreement(text, dialect)
    return width > 1 and share == 1.0 and dialect.delimiter in _USUAL and text.count("\n") > 1


def _quotechar(text: str) -> str:
    single = len(re.findall(r"(?:^|[,;\t|])'[^']*'(?=$|[,;\t|\r\n])", text[:65536], re.MULTILINE))
    double = len(re.findall(r'(?:^|[,;\t|])"', text[:65536], re.MULTILINE))
    return "'" if single > 1 and double == 0 else '"'


def _agreement(text: str, dialect: Dialect) -> tuple[int, float]:
    widths = Counter(len(row) for row in _first_rows(text, dialect) if row)
    if not widths:
        return 0, 0.0
    header = next(iter(widths))
    return header, widths[header] / widths.total()


def _first_rows(text: str, dialect: Dialect) -> list[list[str]]:
    # The last line of the sample may be cut in the middle.
    lines = [line + "\n" for line in text.split("\n")]
    lines = lines[:-1] if len(lines) > 1 else lines
    rows: list[list[str]] = []
    try:
        for row in dialect.reader(lines):
            rows.append(row)
            if len(rows) == 50:
                break
    except csv.Error:
        return rows
    return rows
