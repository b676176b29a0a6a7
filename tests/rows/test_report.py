"""The verdict on a whole file: counts, the five per cent rule, one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsyn.rows.mapping import BadMapping
from parsyn.rows.report import validate
from parsyn.rows.requests import Source, ValidateRequest, ValidationReport
from parsyn.wire.states import Compression, DatasetStatus, FileFormat, SchemaKind

Write = Callable[[str, bytes | str], Path]
READY, INVALID = DatasetStatus.READY, DatasetStatus.INVALID


def report(path: Path, *, strict: bool = False, **source: Any) -> ValidationReport:
    return validate(ValidateRequest(Source(str(path), path.name, **source), strict))


def pairs(good: int, bad: int) -> str:
    rows = [json.dumps({"prompt": f"q{n}", "completion": "a"}) for n in range(good)]
    return "\n".join(rows + ['{"prompt": "q", "completion": ""}'] * bad)


def test_a_good_file(write: Write) -> None:
    found = report(write("a.jsonl", pairs(3, 0)))
    assert found == ValidationReport(
        status=READY,
        summary="3 rows read as prompt_completion, all usable.",
        file_format=FileFormat.JSONL,
        schema_kind=SchemaKind.PROMPT_COMPLETION,
        columns=["prompt", "completion"],
        row_count=3,
    )


@pytest.mark.parametrize(
    ("good", "bad", "strict", "status"),
    [(95, 5, False, READY), (94, 6, False, INVALID), (95, 5, True, INVALID), (100, 0, True, READY)],
)
def test_up_to_five_per_cent_may_be_left_out(
    write: Write, good: int, bad: int, strict: bool, status: DatasetStatus
) -> None:
    found = report(write("a.jsonl", pairs(good, bad)), strict=strict)
    assert (found.status, found.row_count, found.bad_row_count) == (status, good, bad)
    assert found.problems_count == bad
    if bad:
        assert f'Row {good + 1}, line {good + 1}, column "completion": ' in found.summary
        assert ("strict" in found.summary) is strict


def test_problems_are_gathered_by_code_and_column_with_their_first_rows(write: Write) -> None:
    rows = [{"prompt": "q", "completion": "a"}] * 400
    lines = [json.dumps(row) for row in rows]
    for place in range(0, 390, 30):
        lines[place] = '{"prompt": "q", "completion": 3}'
    lines[7] = "{broken"
    found = report(write("a.jsonl", "\n".join(lines)))
    assert found.status is READY
    assert [(p.code, p.column, p.count, p.row, p.line, p.level) for p in found.problems] == [
        ("wrong_type", "completion", 13, 1, 1, "error"),
        ("invalid_json", None, 1, 8, 8, "error"),
    ]
    assert found.problems[0].rows == list(range(1, 300, 30))
    assert (found.row_count, found.bad_row_count, found.problems_count) == (386, 14, 14)


def test_a_wrong_name_is_a_warning(write: Write) -> None:
    found = report(write("a.jsonl", f"[{pairs(1, 0)}]"))
    assert (found.status, found.file_format) == (READY, FileFormat.JSON)
    assert [(p.code, p.level) for p in found.problems] == [("format_mismatch", "warning")]
    assert found.problems_count == 0


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.jsonl", b"", "empty_file"),
        ("a.json", b"[]", "empty_file"),
        ("a.csv", b"prompt,completion\n", "empty_file"),
        ("a.jsonl", pairs(3, 0).encode("utf-16"), "wrong_encoding"),
        ("a.jsonl", b"\x89PNG\r\n\x1a\n....", "unsupported_file"),
        ("a.json", b'[{"text": "a"}, {"text": "b"', "truncated"),
        ("a.jsonl", b'{"a": 1\n{"a": 2\n', "invalid_json"),
    ],
)
def test_a_file_that_cannot_be_used(write: Write, name: str, content: bytes, code: str) -> None:
    found = report(write(name, content))
    assert found.status is INVALID
    assert found.problems[0].code == code
    assert found.problems_count >= 1
    assert found.summary.endswith(".")


def test_columns_that_fit_no_shape_wait_for_a_mapping(write: Write) -> None:
    path = write("a.csv", "question,answer\nwhy,because\nhow,so\n")
    found = report(path)
    assert (found.status, found.schema_kind, found.needs_mapping) == (
        READY,
        SchemaKind.UNKNOWN,
        True,
    )
    assert found.row_count == 2
    assert found.candidates == [SchemaKind.PROMPT_COMPLETION, SchemaKind.TEXT]
    accepted = found.suggestions[0]
    found = report(path, schema_kind=accepted.schema_kind, mapping=accepted.mapping)
    assert (found.status, found.schema_kind, found.needs_mapping) == (
        READY, SchemaKind.PROMPT_COMPLETION, False,
    )  # fmt: skip
    assert found.mapping == {"prompt": "question", "completion": "answer"}
    with pytest.raises(BadMapping, match='no column "reply"'):
        report(path, mapping={"prompt": "question", "completion": "reply"})


def test_a_shape_found_by_content_says_which_columns(write: Write) -> None:
    turns = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]
    found = report(write("a.jsonl", json.dumps({"dialog": turns})))
    assert found.schema_kind is SchemaKind.SHAREGPT
    assert found.mapping == {"conversations": "dialog"}


def test_columns_that_come_late_are_listed(write: Write) -> None:
    lines = ['{"text": "a"}'] * 300 + ['{"text": "b", "late": 1}']
    assert report(write("a.jsonl", "\n".join(lines))).columns == ["text", "late"]


@pytest.mark.parametrize(
    ("name", "kind", "rows"),
    [
        ("alpaca_en_demo.json", SchemaKind.ALPACA, 999),
        ("identity.json", SchemaKind.ALPACA, 91),
        ("glaive_toolcall_en_demo.json", SchemaKind.SHAREGPT, 300),
        ("dpo_en_demo.json", SchemaKind.PREFERENCE, 300),
        ("kto_en_demo.json", SchemaKind.KTO, 300),
        ("c4_demo.jsonl", SchemaKind.TEXT, 300),
    ],
)
def test_real_files_are_ready(
    shared_file: Callable[[str], Path], name: str, kind: SchemaKind, rows: int
) -> None:
    found = report(shared_file(name))
    assert (found.status, found.schema_kind, found.row_count) == (READY, kind, rows)
    assert (found.bad_row_count, found.problems, found.compression) == (0, [], Compression.NONE)


def test_a_real_file_with_three_rows_damaged(shared_file: Callable[[str], Path]) -> None:
    path = shared_file("c4_demo.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[10] = lines[10][: len(lines[10]) // 2]
    lines[20] = '{"text": "café"}'.encode("latin-1")
    lines[30] = b'{"text": null}'
    path.write_bytes(b"\n".join(lines))
    found = report(path)
    assert (found.status, found.row_count, found.bad_row_count) == (READY, 297, 3)
    assert [(p.code, p.row, p.line) for p in found.problems] == [
        ("invalid_json", 11, 11),
        ("wrong_encoding", 21, 21),
        ("missing_column", 31, 31),
    ]
