"""Every accepted format comes back as the rows that were written."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsyn.rows.formats import Row, read_file, read_rows, sniff
from parsyn.rows.problems import Problem, ProblemCode, Severity
from parsyn.wire.states import Compression, FileFormat

Write = Callable[[str, bytes | str], Path]
ROWS = [{"prompt": "Où ?", "completion": "Là."}, {"prompt": "2+2", "completion": "4\nfour"}]


def values(path: Path, filename: str | None = None) -> list[dict[str, Any]]:
    items = list(read_file(path, filename or path.name))
    assert all(isinstance(item, Row) for item in items), items
    return [item.values for item in items if isinstance(item, Row)]


def lines_of(path: Path) -> list[int | None]:
    return [item.line for item in read_file(path, path.name)]


def test_jsonl_with_bom_blank_lines_and_windows_line_ends(write: Write) -> None:
    text = "\ufeff" + "\r\n\r\n".join(json.dumps(row) for row in ROWS)
    path = write("a.jsonl", text)
    assert sniff(path, "a.jsonl").file_format is FileFormat.JSONL
    assert values(path) == ROWS
    assert lines_of(path) == [1, 3]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_array_numbers_the_lines_where_rows_begin(write: Write, indent: int | None) -> None:
    path = write("a.json", json.dumps(ROWS, indent=indent))
    assert sniff(path, "a.json").file_format is FileFormat.JSON
    assert values(path) == ROWS
    assert lines_of(path) == ([1, 1] if indent is None else [2, 6])


def test_json_documents_one_after_the_other(write: Write) -> None:
    path = write("a.json", "\n".join(json.dumps(row, indent=1) for row in ROWS))
    assert values(path) == ROWS


def test_a_json_array_many_times_the_buffer(write: Write) -> None:
    rows = [{"n": number, "text": "é" * (number % 5000)} for number in range(700)]
    assert values(write("big.json", json.dumps(rows, ensure_ascii=False))) == rows


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiters_quotes_and_bom(write: Write, delimiter: str) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(["prompt", "completion"])
    rows = [["a, b; c", 'says "hi"'], ["two\nlines", "x|y"], ["é", "plain"]]
    writer.writerows(rows)
    path = write("a.csv", "\ufeff" + buffer.getvalue())
    assert sniff(path, "a.csv").dialect.delimiter == delimiter
    assert values(path) == [dict(zip(("prompt", "completion"), row, strict=True)) for row in rows]
    assert lines_of(path) == [2, 3, 5]


def test_csv_with_single_quotes_and_with_backslash_escapes(write: Write) -> None:
    single = write("s.csv", "'q','a'\n'one, two','three'\n'four','five'\n")
    assert values(single) == [{"q": "one, two", "a": "three"}, {"q": "four", "a": "five"}]
    escaped = write("e.csv", 'q,a\n"say \\"hi\\", friend",x\n')
    assert values(escaped) == [{"q": 'say "hi", friend', "a": "x"}]


def test_csv_cells_longer_than_the_csv_modules_own_limit(write: Write) -> None:
    cell = "x" * 300_000
    assert values(write("a.csv", f"text,n\n{cell},1\n")) == [{"text": cell, "n": "1"}]


def test_parquet_with_nested_missing_and_dated_values(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "messages": [[{"role": "user", "content": "é", "calls": None}], None],
            "score": pa.array([1.5, float("nan")]),
            "day": pa.array([0, None], pa.date32()),
        }
    )
    pq.write_table(table, path)
    assert values(path) == [
        {
            "messages": [{"role": "user", "content": "é", "calls": None}],
            "score": 1.5,
            "day": "1970-01-01",
        },
        {"messages": None, "score": None, "day": None},
    ]
    assert lines_of(path) == [None, None]


def test_plain_text_by_lines_or_by_paragraphs(write: Write) -> None:
    assert values(write("a.txt", "one\ntwo\n")) == [{"text": "one"}, {"text": "two"}]
    path = write("b.txt", "one\nstill one\n\n\ntwo\n")
    assert values(path) == [{"text": "one\nstill one"}, {"text": "two"}]
    assert lines_of(path) == [1, 5]


@pytest.mark.parametrize(
    ("compress", "compression"),
    [(gzip.compress, Compression.GZIP), (zstandard.compress, Compression.ZSTD)],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.txt"])
def test_compression_around_each_format(
    tmp_path: Path,
    write: Write,
    name: str,
    compress: Callable[[bytes], bytes],
    compression: Compression,
) -> None:
    raw = {
        "a.jsonl": b'{"text":"one"}\n{"text":"two"}\n',
        "a.json": b'[{"text":"one"},{"text":"two"}]',
        "a.csv": b"text\none\ntwo\n",
        "a.txt": b"one\ntwo\n",
    }
    pq.write_table(pa.table({"text": ["one", "two"]}), tmp_path / "plain.parquet")
    raw["a.parquet"] = (tmp_path / "plain.parquet").read_bytes()
    path = write(name + ".packed", compress(raw[name]))
    sniffed = sniff(path, f"{name}.{compression}")
    assert sniffed.compression is compression
    rows = [item.values for item in read_rows(path, sniffed) if isinstance(item, Row)]
    assert rows == [{"text": "one"}, {"text": "two"}]


def test_several_compressed_members_are_one_file(write: Write) -> None:
    one, two = b'{"n":1}\n', b'{"n":2}\n'
    assert values(write("a.jsonl.gz", gzip.compress(one) + gzip.compress(two))) == [
        {"n": 1},
        {"n": 2},
    ]
    packed = zstandard.compress(one) + zstandard.compress(two)
    assert values(write("a.jsonl.zst", packed)) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.jsonl", '[{"n": 1}, {"n": 2}]', FileFormat.JSON),
        ("a.csv", '{"n": 1}\n{"n": 2}\n', FileFormat.JSONL),
        ("a.json", '{"n": 1}\n{"n": 2}\n', FileFormat.JSONL),
        ("a.jsonl", "n,m\n1,2\n3,4\n", FileFormat.CSV),
    ],
)
def test_a_readable_file_under_a_wrong_name_is_read_with_a_warning(
    write: Write, name: str, content: str, found: FileFormat
) -> None:
    sniffed = sniff(write(name, content), name)
    assert sniffed.file_format is found
    assert [warning.code for warning in sniffed.warnings] == [ProblemCode.FORMAT_MISMATCH]
    assert sniffed.warnings[0].severity is Severity.WARNING
    assert name in sniffed.warnings[0].message


def test_a_file_without_a_telling_name_is_told_by_its_content(write: Write) -> None:
    assert sniff(write("data", "a;b\n1;2\n3;4\n"), "data").file_format is FileFormat.CSV
    assert sniff(write("data", "Just words, here.\nMore.\n"), "data").file_format is FileFormat.TEXT
    assert sniff(write("data", '{"a": 1}'), "data").file_format is FileFormat.JSONL


_keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
_EXAMPLES = 60
_round_trip = settings(
    max_examples=_EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@_round_trip
@given(
    rows=st.lists(st.dictionaries(_keys, _json, max_size=4), min_size=1, max_size=6),
    escape=st.booleans(),
)
def test_any_json_rows_survive_jsonl_and_arrays(
    write: Write, rows: list[dict[str, Any]], escape: bool
) -> None:
    text = "\n".join(json.dumps(row, ensure_ascii=escape) for row in rows)
    assert values(write("a.jsonl", text)) == rows
    assert values(write("a.json", json.dumps(rows, ensure_ascii=escape, indent=1))) == rows


_cells = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=12
)


@_round_trip
@given(
    rows=st.lists(st.tuples(_cells, _cells, _cells), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
)
def test_any_cells_survive_csv(
    write: Write, rows: list[tuple[str, str, str]], delimiter: str
) -> None:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(["first", "second", "third"])
    writer.writerows(rows)
    path = write("a.csv", buffer.getvalue())
    assert [tuple(row.values()) for row in values(path)] == rows


@_round_trip
@given(
    content=st.binary(max_size=300),
    name=st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.txt", "a.parquet", "a"]),
)
def test_no_bytes_under_any_name_raise(write: Write, content: bytes, name: str) -> None:
    for item in read_file(write("file", content), name):
        assert isinstance(item, Row | Problem)
        if isinstance(item, Problem):
            assert item.message.endswith(".")
