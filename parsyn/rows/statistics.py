"""Numbers about a dataset, exact and with memory that does not grow with the rows' size."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from parsyn.rows.formats import Row
from parsyn.rows.json_values import Values
from parsyn.rows.messages import Example
from parsyn.rows.problems import BadRow, Problem
from parsyn.rows.requests import (
    ESTIMATE,
    ColumnStats,
    Duplicates,
    Histogram,
    Statistics,
    StatsRequest,
    TokenCounts,
)
from parsyn.rows.sources import OpenSource, example_of, open_source
from parsyn.rows.template import load_template
from parsyn.rows.tokens import RowEncoder, load_tokenizer

_BINS = 30
_BUCKETS = 256
_SPLITS = 20


def measure(request: StatsRequest) -> Statistics:
    """Counts the usable rows. Raises `UnusableFile`, `BadMapping`, `TemplateError`, `BadRow`."""
    source = open_source(request.source)
    columns = _Columns()
    seen = _Seen()
    lengths = _Lengths()
    rows = _usable(source, columns, seen)
    if source.plan is None:
        tokens = None
        for _ in rows:
            pass
    else:
        for total, trained in _token_counts(rows, request):
            lengths.add(total, trained)
        tokens = lengths.counts(ESTIMATE if request.model_dir is None else "model")
    return Statistics(
        seen.rows, columns.stats(), tokens, Duplicates(seen.repeated()), columns.splits()
    )


def _usable(source: OpenSource, columns: _Columns, seen: _Seen) -> Iterator[Example | None]:
    """One item a usable row; None for rows of no known shape."""
    for item in source.items:
        if isinstance(item, Problem):
            continue
        example = None if source.plan is None else example_of(item, source.plan)
        if isinstance(example, Problem):
            continue
        columns.add(item.values)
        seen.add(item)
        yield example


def _token_counts(
    rows: Iterable[Example | None], request: StatsRequest
) -> Iterator[tuple[int, int | None]]:
    examples = (example for example in rows if example is not None)
    if request.model_dir is None:
        yield from ((_estimate(example), None) for example in examples)
        return
    model = Path(request.model_dir)
    encoder = RowEncoder(load_tokenizer(model), load_template(model), request.train_on)
    for result in encoder.encode_all(examples):
        if not isinstance(result, BadRow):
            yield len(result.input_ids), result.trained_count


def _estimate(example: Example) -> int:
    if example.input_ids is not None:
        return len(example.input_ids)
    turns = [*example.messages, *(example.chosen or [])]
    size = sum(len(turn["content"]) for turn in turns) + len(example.text or "")
    size += sum(len(json.dumps(turn.get("tool_calls"))) for turn in turns if "tool_calls" in turn)
    size += len(json.dumps(example.tools)) if example.tools else 0
    return math.ceil(size / 4)


class _Lengths:
    """How many rows have how many tokens."""

    def __init__(self) -> None:
        self._rows_of: Counter[int] = Counter()
        self._trained: int | None = None

    def add(self, total: int, trained: int | None) -> None:
        self._rows_of[total] += 1
        if trained is not None:
            self._trained = (self._trained or 0) + trained

    def counts(self, tokenizer: str) -> TokenCounts | None:
        rows = self._rows_of.total()
        if rows == 0:
            return None
        total = sum(length * count for length, count in self._rows_of.items())
        return TokenCounts(
            total=total,
            trained=self._trained,
            mean=round(total / rows, 2),
            p50=self._percentile(0.5),
            p95=self._percentile(0.95),
            max=max(self._rows_of),
            histogram=self._histogram(),
            tokenizer=tokenizer,
        )

    def _percentile(self, share: float) -> int:
        """Nearest rank: the least length that this share of the rows does not exceed."""
        rank = math.ceil(share * self._rows_of.total())
        for length in sorted(self._rows_of):
            rank -= self._rows_of[length]
            if rank <= 0:
                return length
        return 0

    def _histogram(self) -> Histogram:
        width = max(1, math.ceil((max(self._rows_of) + 1) / _BINS))
        bins = max(self._rows_of) // width + 1
        counts = [0] * bins
        for length, count in self._rows_of.items():
            counts[length // width] += count
        return Histogram([place * width for place in range(bins + 1)], counts)


class _Seen:
    """64-bit digests of rows: 8 bytes a row, in buckets so that counting needs little more."""

    def __init__(self) -> None:
        self.rows = 0
        self._buckets = [array("Q") for _ in range(_BUCKETS)]

    def add(self, row: Row) -> None:
        self.rows += 1
        canonical = json.dumps(row.values, sort_keys=True, separators=(",", ":"))
        digest = hashlib.blake2b(canonical.encode(), digest_size=8).digest()
        self._buckets[digest[0]].append(int.from_bytes(digest, "big"))

    def repeated(self) -> int:
        return sum(len(bucket) - len(set(bucket)) for bucket in self._buckets)


class _Columns:
    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._rows = 0
        self._splits: Counter[str] = Counter()

    def add(self, values: Values) -> None:
        self._rows += 1
        for name, value in values.items():
            if name in self._columns or len(self._columns) < 1000:
                self._columns.setdefault(name, _Column()).add(value)
        split = values.get("split")
        if isinstance(split, str) and len(self._splits) <= _SPLITS:
            self._splits[split[:100]] += 1

    def stats(self) -> dict[str, ColumnStats]:
        return {name: column.stats(self._rows) for name, column in self._columns.items()}

    def splits(self) -> dict[str, int]:
        """Rows by the value of a column called `split`, when it has few values."""
        return dict(self._splits) if len(self._splits) <= _SPLITS else {}


class _Column:
    def __init__(self) -> None:
        self._types: set[str] = set()
        self._present = 0
        self._sum = 0.0
        self._least = math.inf
        self._most = -math.inf

    def add(self, value: Any) -> None:
        if value is None:
            return
        kind, size = _kind_and_size(value)
        self._types.add(kind)
        self._present += 1
        self._sum += size
        self._least = min(self._least, size)
        self._most = max(self._most, size)

    def stats(self, rows: int) -> ColumnStats:
        nulls = rows - self._present
        if not self._present:
            return ColumnStats("null", nulls, None, None, None)
        kind = next(iter(self._types)) if len(self._types) == 1 else "mixed"
        mean = round(self._sum / self._present, 4)
        return ColumnStats(kind, nulls, self._least, mean, self._most)


def _kind_and_size(value: Any) -> tuple[str, float]:
    if isinstance(value, str):
        return "text", len(value)
    if isinstance(value, bool):
        return "boolean", int(value)
    if isinstance(value, int | float):
        # JSON numbers have no bound, floats do.
        return "number", max(-1e308, min(1e308, value))
    return ("list" if isinstance(value, list) else "object"), len(value)
