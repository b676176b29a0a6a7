"""Numbers held against the same numbers counted by hand."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from parsyn.rows.requests import ColumnStats, Source, Statistics, StatsRequest
from parsyn.rows.statistics import measure
from parsyn.rows.template import load_template

Write = Callable[[str, bytes | str], Path]


def stats(path: Path, model: Path | None = None, **source: Any) -> Statistics:
    folder = None if model is None else str(model)
    return measure(StatsRequest(Source(str(path), path.name, **source), folder))


def test_columns_splits_and_duplicates(write: Write) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "abcd", "n": 1, "split": "train", "tags": ["x"]},
        {"split": "train", "text": "abcd", "tags": ["x"], "n": 1},
        {"text": "ab", "n": 2.5, "split": "test", "tags": []},
        {"text": "ab", "n": None, "split": "test", "tags": "none"},
    ]
    found = stats(write("a.jsonl", "\n".join(map(json.dumps, rows))))
    assert found.rows == 4
    assert found.columns == {
        "text": ColumnStats("text", 0, 2, 3.0, 4),
        "n": ColumnStats("number", 1, 1, 1.5, 2.5),
        "split": ColumnStats("text", 0, 4, 4.5, 5),
        "tags": ColumnStats("mixed", 0, 0, 1.5, 4),
    }
    assert found.splits == {"train": 2, "test": 2}
    assert (found.duplicates.exact, found.duplicates.near) == (1, None)


def test_token_counts_of_the_models_tokenizer(
    write: Write, model_dir: Path, tokenizer: Tokenizer
) -> None:
    rows = [{"prompt": f"question {n}", "completion": "word " * (n % 37 + 1)} for n in range(200)]
    found = stats(write("a.jsonl", "\n".join(map(json.dumps, rows))), model_dir)
    template = load_template(model_dir)
    texts = [
        template.render(
            [
                {"role": "user", "content": row["prompt"]},
                {"role": "assistant", "content": row["completion"]},
            ]
        )
        for row in rows
    ]
    lengths = sorted(len(tokenizer.encode(text).ids) for text in texts)
    answers = [tokenizer.encode(row["completion"] + "<|im_end|>").ids for row in rows]
    tokens = found.tokens
    assert tokens is not None
    assert tokens.tokenizer == "model"
    assert tokens.total == sum(lengths)
    assert tokens.trained == sum(map(len, answers))
    assert tokens.mean == pytest.approx(statistics.mean(lengths), abs=0.01)
    assert (tokens.p50, tokens.p95, tokens.max) == (lengths[99], lengths[189], lengths[-1])
    edges, counts = tokens.histogram.edges, tokens.histogram.counts
    assert len(edges) == len(counts) + 1 <= 31
    assert counts == [
        sum(low <= length < high for length in lengths) for low, high in itertools.pairwise(edges)
    ]
    assert sum(counts) == 200


def test_without_a_model_tokens_are_estimated(write: Write) -> None:
    found = stats(write("a.jsonl", '{"text": "abcdefghi"}\n{"text": "ab"}\n'))
    tokens = found.tokens
    assert tokens is not None
    assert (tokens.tokenizer, tokens.total, tokens.trained) == ("characters/4", 4, None)


def test_bad_rows_are_not_counted_and_unknown_shapes_have_no_tokens(write: Write) -> None:
    found = stats(write("a.jsonl", '{"text": "a"}\n{"text": 3}\nbroken\n{"text": "b"}\n'))
    assert (found.rows, found.columns["text"].type) == (2, "text")
    found = stats(write("b.csv", "question,answer\n1,2\n3,4\n"))
    assert (found.rows, found.tokens) == (2, None)


def test_many_rows_of_which_a_third_repeat(write: Write) -> None:
    lines = [json.dumps({"text": f"row {n % 2000}"}) for n in range(3000)]
    assert stats(write("a.jsonl", "\n".join(lines))).duplicates.exact == 1000


def test_numbers_beyond_a_float(write: Write) -> None:
    found = stats(write("a.jsonl", '{"text": "a", "n": 1' + "0" * 400 + "}"))
    assert found.columns["n"].max == 1e308


def test_a_real_file(shared_file: Callable[[str], Path]) -> None:
    path = shared_file("alpaca_en_demo.json")
    rows = json.loads(path.read_text())
    found = stats(path)
    assert found.rows == 999
    assert found.columns["output"].max == max(len(row["output"]) for row in rows)
    tokens = found.tokens
    assert tokens is not None
    asked = ["\n".join(t for t in (r["instruction"], r["input"]) if t.strip()) for r in rows]
    expected = [
        math.ceil((len(a) + len(r["output"])) / 4) for a, r in zip(asked, rows, strict=True)
    ]
    assert (tokens.total, tokens.max) == (sum(expected), max(expected))
    distinct = {json.dumps(row, sort_keys=True) for row in rows}
    assert found.duplicates.exact == 999 - len(distinct)
