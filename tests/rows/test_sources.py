"""What a trainer reads: the usable rows, in order, and a clear stop where a file is unusable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from parsyn.rows.mapping import BadMapping
from parsyn.rows.problems import UnusableFile
from parsyn.rows.requests import Source
from parsyn.rows.sources import read_examples
from parsyn.wire.states import SchemaKind

Write = Callable[[str, bytes | str], Path]


def source(path: Path, kind: SchemaKind | None = None, **mapping: str) -> Source:
    return Source(str(path), path.name, kind, mapping or None)


def test_usable_rows_in_order(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a"}\nbroken\n{"text": ""}\n{"text": "b"}\n')
    for asked in (source(path), source(path, SchemaKind.TEXT)):
        assert [example.text for example in read_examples(asked)] == ["a", "b"]


def test_a_mapping_is_applied_or_asked_for(write: Write) -> None:
    path = write("a.csv", "q,a\nwhy,because\n")
    examples = list(read_examples(source(path, None, prompt="q", completion="a")))
    assert [example.plain for example in examples] == [("why", "because")]
    with pytest.raises(BadMapping, match="fit no shape"):
        list(read_examples(source(path)))


def test_a_file_that_breaks_off_stops_the_reading(write: Write) -> None:
    rows = read_examples(source(write("a.json", '[{"text": "a"}, {"text": "b"')))
    assert next(rows).text == "a"
    with pytest.raises(UnusableFile, match="cut off"):
        next(rows)
    with pytest.raises(UnusableFile, match="empty"):
        list(read_examples(source(write("b.jsonl", ""))))


def test_a_real_file(shared_file: Callable[[str], Path]) -> None:
    examples = list(read_examples(source(shared_file("identity.json"), SchemaKind.ALPACA)))
    assert len(examples) == 91
    assert examples[0].messages[0] == {"role": "user", "content": "hi"}
