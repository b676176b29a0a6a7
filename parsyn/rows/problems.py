"""What can be wrong with a dataset file: the closed set of codes, one problem, and its severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProblemCode(StrEnum):
    EMPTY_FILE = "empty_file"
    WRONG_ENCODING = "wrong_encoding"
    UNSUPPORTED_FILE = "unsupported_file"
    FORMAT_MISMATCH = "format_mismatch"
    DAMAGED_FILE = "damaged_file"
    FILE_TOO_LARGE = "file_too_large"
    ROW_TOO_LARGE = "row_too_large"
    BAD_HEADER = "bad_header"
    WRONG_CELL_COUNT = "wrong_cell_count"
    UNCLOSED_QUOTE = "unclosed_quote"
    INVALID_JSON = "invalid_json"
    NOT_AN_OBJECT = "not_an_object"
    TRUNCATED = "truncated"
    TRAILING_DATA = "trailing_data"
    NON_FINITE_NUMBER = "non_finite_number"
    LONE_SURROGATE = "lone_surrogate"
    NUL_BYTE = "nul_byte"
    TOO_DEEP = "too_deep"
    MISSING_COLUMN = "missing_column"
    WRONG_TYPE = "wrong_type"
    EMPTY_VALUE = "empty_value"
    UNKNOWN_ROLE = "unknown_role"
    NO_ANSWER = "no_answer"
    BAD_TOOL_CALL = "bad_tool_call"
    BAD_TOOLS = "bad_tools"
    UNSUPPORTED_CONTENT = "unsupported_content"
    BAD_INPUT_IDS = "bad_input_ids"
    TEMPLATE_FAILED = "template_failed"
    NOTHING_TRAINED = "nothing_trained"


class Severity(StrEnum):
    """`warning`: the row is kept. `row`: it is left out. `file`: the file cannot be used."""

    WARNING = "warning"
    ROW = "row"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong at one place. Rows and lines count from 1; `message` says what to do."""

    code: ProblemCode
    message: str
    row: int | None = None
    line: int | None = None
    column: str | None = None
    severity: Severity = Severity.ROW


class BadRow(Exception):
    """A row that no shape can use; readers and reports turn it into a `Problem`."""

    def __init__(self, code: ProblemCode, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.column = column

    def at(self, row: int | None, line: int | None) -> Problem:
        return Problem(self.code, self.message, row, line, self.column)


class UnusableFile(Exception):
    """The file cannot be read at all, or not beyond this point."""

    def __init__(
        self,
        code: ProblemCode,
        message: str,
        *,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message)
        self.problem = Problem(code, message, row, line, column, Severity.FILE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a file may make us hold or read; sizes in bytes after decompression."""

    total_bytes: int = 64 << 30
    row_bytes: int = 16 << 20
    depth: int = 100
