"""What is wrong with a file is said with its place and what to do; the good rows still come."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from parsyn.rows.formats import Row, read_file
from parsyn.rows.problems import Limits, Problem, ProblemCode, Severity

Write = Callable[[str, bytes | str], Path]
SMALL = Limits(total_bytes=4 << 20, row_bytes=1 << 16)
GOOD = '{"n": 1}\n'


def read(path: Path, limits: Limits | None = None) -> tuple[list[int], list[Problem]]:
    """The numbers of the good rows, and the problems."""
    items = list(read_file(path, path.name, limits))
    rows = [item.number for item in items if isinstance(item, Row)]
    return rows, [item for item in items if isinstance(item, Problem)]


def only_problem(path: Path, limits: Limits | None = None) -> Problem:
    _, problems = read(path, limits)
    assert len(problems) == 1, problems
    assert problems[0].message[0].isupper() or problems[0].message[0] in '"'
    return problems[0]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", gzip.compress(b"")])
def test_an_empty_file(write: Write, content: bytes) -> None:
    problem = only_problem(write("a.jsonl", content))
    assert (problem.code, problem.severity) == (ProblemCode.EMPTY_FILE, Severity.FILE)


@pytest.mark.parametrize(
    ("codec", "mark", "name"),
    [
        ("utf-16-le", b"\xff\xfe", "UTF-16 (little endian)"),
        ("utf-16-be", b"\xfe\xff", "UTF-16 (big endian)"),
        ("utf-16-le", b"", "UTF-16 (little endian)"),
        ("utf-16-be", b"", "UTF-16 (big endian)"),
        ("utf-32-le", b"\xff\xfe\x00\x00", "UTF-32 (little endian)"),
        ("utf-32-be", b"", "UTF-32 (big endian)"),
    ],
)
def test_wide_encodings_are_named(write: Write, codec: str, mark: bytes, name: str) -> None:
    problem = only_problem(write("a.jsonl", mark + (GOOD * 3).encode(codec)))
    assert problem.code is ProblemCode.WRONG_ENCODING
    assert problem.severity is Severity.FILE
    assert problem.line == 1
    assert name in problem.message
    assert "UTF-8" in problem.message


@pytest.mark.parametrize(
    ("name", "template", "line"),
    [
        ("a.jsonl", '{"t":"fine"}\n{"t":"%s"}\n{"t":"ok"}\n', 2),
        ("a.json", '[\n{"t":"fine"},\n{"t":"%s"},\n{"t":"ok"}]', 3),
        ("a.csv", "t,n\nfine,1\n%s,2\nok,3\n", 3),
        ("a.txt", "fine\n%s\nok\n", 2),
    ],
)
def test_latin_1_is_named_with_its_line(write: Write, name: str, template: str, line: int) -> None:
    path = write(name, (template % "café au lait").encode("latin-1"))
    rows, problems = read(path)
    assert rows == [1, 3]
    assert [(p.code, p.row, p.line) for p in problems] == [(ProblemCode.WRONG_ENCODING, 2, line)]
    assert "Latin-1" in problems[0].message


def test_windows_1252_and_other_encodings_are_told_apart(write: Write) -> None:
    path = write("a.txt", "it’s\n".encode("cp1252") + "你好世界\n".encode("gb18030"))
    _, problems = read(path)
    assert "Windows-1252" in problems[0].message
    assert "GB18030" in problems[1].message


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "PNG"),
        (b"PK\x03\x04" + b"\0" * 50, "ZIP"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"<!DOCTYPE html><html>Not found</html>", "HTML"),
        (bytes(range(256)) * 8, "binary"),
        (gzip.compress(gzip.compress(GOOD.encode())), "gzip file inside"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
    ],
)
def test_a_foreign_file_is_called_what_it_is(write: Write, content: bytes, named: str) -> None:
    problem = only_problem(write("a.jsonl", content))
    assert (problem.code, problem.severity) == (ProblemCode.UNSUPPORTED_FILE, Severity.FILE)
    assert named in problem.message
    assert "a.jsonl" in problem.message


BROKEN = [
    ('{"n": nope}', ProblemCode.INVALID_JSON, None),
    ('{"n": ' + "9" * 5000 + "}", ProblemCode.INVALID_JSON, None),
    ("[1, 2]", ProblemCode.NOT_AN_OBJECT, None),
    ('"text"', ProblemCode.NOT_AN_OBJECT, None),
    ("null", ProblemCode.NOT_AN_OBJECT, None),
    ('{"n": NaN}', ProblemCode.NON_FINITE_NUMBER, None),
    ('{"n": [-Infinity]}', ProblemCode.NON_FINITE_NUMBER, None),
    ('{"n": 1e999}', ProblemCode.NON_FINITE_NUMBER, None),
    ('{"t": ["\\ud83d"]}', ProblemCode.LONE_SURROGATE, "t"),
    ('{"t": {"a": "x\\u0000"}}', ProblemCode.NUL_BYTE, "t"),
    ('{"t": "x\0"}', ProblemCode.NUL_BYTE, None),
    ('{"t": ' + "[" * 150 + "]" * 150 + "}", ProblemCode.TOO_DEEP, None),
    ('{"t": ' + "[" * 20000 + "]" * 20000 + "}", ProblemCode.TOO_DEEP, None),
]
BROKEN_LINES = [
    ('{"n": 1', ProblemCode.INVALID_JSON, None),
    ('{"n": 1} {"n": 2}', ProblemCode.INVALID_JSON, None),
]


@pytest.mark.parametrize(("text", "code", "column"), [*BROKEN, *BROKEN_LINES])
def test_a_broken_line_leaves_the_others_standing(
    write: Write, text: str, code: ProblemCode, column: str | None
) -> None:
    rows, problems = read(write("a.jsonl", GOOD + text + "\n" + GOOD))
    assert rows == [1, 3]
    assert [(p.code, p.row, p.line, p.column) for p in problems] == [(code, 2, 2, column)]
    assert problems[0].severity is Severity.ROW


@pytest.mark.parametrize(("text", "code", "column"), BROKEN)
def test_a_broken_element_leaves_the_others_standing(
    write: Write, text: str, code: ProblemCode, column: str | None
) -> None:
    rows, problems = read(write("a.json", f"[{GOOD},\n{text},\n{GOOD}]"))
    assert rows == [1, 3]
    assert [(p.code, p.row, p.line, p.column) for p in problems] == [(code, 2, 3, column)]


def test_a_surrogate_pair_is_a_character(write: Write) -> None:
    assert read(write("a.jsonl", '{"t": "\\ud83d\\ude00"}')) == ([1], [])


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('[{"n": 1},\n{"n": 2', ProblemCode.TRUNCATED),
        ('[{"n": 1},\n{"n": "2', ProblemCode.TRUNCATED),
        ('[{"n": 1}', ProblemCode.TRUNCATED),
        ('[{"n": 1}]\n[{"n": 2}]', ProblemCode.TRAILING_DATA),
    ],
)
def test_an_array_that_is_cut_off_or_goes_on(write: Write, content: str, code: ProblemCode) -> None:
    rows, problems = read(write("a.json", content))
    assert rows == [1]
    assert [(p.code, p.severity) for p in problems] == [(code, Severity.FILE)]


def test_rows_that_are_too_large(write: Write) -> None:
    huge = json.dumps({"t": "x" * 100_000})
    rows, problems = read(write("a.jsonl", GOOD + huge + "\n" + GOOD), SMALL)
    assert rows == [1, 3]
    assert [(p.code, p.row, p.line) for p in problems] == [(ProblemCode.ROW_TOO_LARGE, 2, 2)]
    rows, problems = read(write("a.json", f"[{GOOD},{huge},{GOOD}]"), SMALL)
    assert rows == [1, 3]
    assert problems[0].code is ProblemCode.ROW_TOO_LARGE
    rows, problems = read(write("a.txt", "one\n" + "x" * 100_000 + "\ntwo"), SMALL)
    assert rows == [1, 3]
    rows, problems = read(write("p.txt", "one\n\n" + "y\n" * 60_000 + "\ntwo"), SMALL)
    assert (rows, problems[0].row, problems[0].line) == ([1, 3], 2, 3)


@pytest.mark.parametrize("cell", ["x" * 100_000, '"' + "line\n" * 20_000])
def test_a_huge_csv_cell_is_named_by_row_line_and_column(write: Write, cell: str) -> None:
    path = write("a.csv", f"id,body,n\n1,fine,2\n2,{cell},3\n")
    rows, problems = read(path, SMALL)
    assert rows == [1]
    found = [(p.code, p.row, p.line, p.column, p.severity) for p in problems]
    assert found == [(ProblemCode.ROW_TOO_LARGE, 2, 3, "body", Severity.FILE)]


def test_csv_rows_with_too_many_or_too_few_cells_and_loose_quotes(write: Write) -> None:
    path = write("a.csv", 'a,b\n1,2\n1,2,3\n1\n"x"y,2\n3,4\n5,a\0b\n')
    rows, problems = read(path)
    assert rows == [1, 5]
    assert [(p.code, p.row, p.line, p.column) for p in problems] == [
        (ProblemCode.WRONG_CELL_COUNT, 2, 3, None),
        (ProblemCode.WRONG_CELL_COUNT, 3, 4, None),
        (ProblemCode.UNCLOSED_QUOTE, 4, 5, "b"),
        (ProblemCode.NUL_BYTE, 6, 7, "b"),
    ]


def test_csv_with_a_quote_that_never_closes_and_with_a_doubled_header(write: Write) -> None:
    problem = read(write("a.csv", 'a,b\n1,2\n3,"open\n4,5\n'))[1][0]
    assert (problem.code, problem.row, problem.line) == (ProblemCode.UNCLOSED_QUOTE, 2, 3)
    problem = only_problem(write("b.csv", "a,a\n1,2\n"))
    assert (problem.code, problem.column) == (ProblemCode.BAD_HEADER, "a")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_bomb_is_not_unpacked(write: Write, compress: Callable[[bytes], bytes]) -> None:
    line = json.dumps({"t": "x" * 5000}) + "\n"
    path = write("a.jsonl.x", compress(line.encode() * 6000))
    assert path.stat().st_size < 300_000
    rows, problems = read(path, SMALL)
    assert problems[-1].code is ProblemCode.FILE_TOO_LARGE
    assert len(rows) <= SMALL.total_bytes // len(line)


def zstd_with_checksum(raw: bytes) -> bytes:
    """As the command line tool writes it; without one, damage cannot always be seen."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(raw)


@pytest.mark.parametrize("compress", [gzip.compress, zstd_with_checksum])
def test_compressed_data_cut_off_or_damaged(
    write: Write, compress: Callable[[bytes], bytes]
) -> None:
    lines = "".join(
        json.dumps({"n": number, "t": str(number) * 9}) + "\n" for number in range(20_000)
    )
    packed = compress(lines.encode())
    for broken in (packed[: len(packed) // 2], packed[:200] + b"\xff" * 50 + packed[250:]):
        problem = read(write("a.jsonl.x", broken))[1][-1]
        assert (problem.code, problem.severity) == (ProblemCode.DAMAGED_FILE, Severity.FILE)


def test_parquet_that_is_cut_off_lies_about_itself_or_holds_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": ["x" * 100] * 1000}), path)
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:10] + b"\xff" * 60 + whole[70:], b"PAR1" * 3):
        path.write_bytes(broken)
        assert read(path)[1][-1].code is ProblemCode.DAMAGED_FILE
    pq.write_table(pa.table({"image": [b"\x00\x01"], "n": [1]}), path)
    problem = only_problem(path)
    assert (problem.code, problem.row, problem.column) == (ProblemCode.WRONG_TYPE, 1, "image")


def test_parquet_with_an_infinite_number_a_bad_string_and_a_huge_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    bad = pa.array([b"ok", b"\xff\xfe"]).cast(pa.binary()).view(pa.string())
    pq.write_table(pa.table({"t": bad, "n": [1.0, 2.0]}), path)
    assert [(p.code, p.row) for p in read(path)[1]] == [(ProblemCode.WRONG_ENCODING, 2)]
    pq.write_table(pa.table({"n": [1.0, float("inf")]}), path)
    problem = only_problem(path)
    assert (problem.code, problem.column) == (ProblemCode.NON_FINITE_NUMBER, "n")
    pq.write_table(pa.table({"t": ["a", "x" * 200_000, "b"]}), path)
    rows, problems = read(path, SMALL)
    assert (rows, problems[0].code, problems[0].row) == ([1, 3], ProblemCode.ROW_TOO_LARGE, 2)


def test_parquet_beyond_the_total_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": [f"{number:0100d}" for number in range(60_000)]}), path)
    problem = only_problem(path, SMALL)
    assert problem.code is ProblemCode.FILE_TOO_LARGE
