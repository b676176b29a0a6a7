"""Whether a file can be trained on: one pass, every problem counted, one sentence to sum up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from parsyn.rows.formats import Row
from parsyn.rows.problems import Problem, ProblemCode, Severity, UnusableFile
from parsyn.rows.requests import ReportedProblem, Suggestion, ValidateRequest, ValidationReport
from parsyn.rows.sources import OpenSource, example_of, open_source
from parsyn.wire.states import DatasetStatus, SchemaKind

BAD_ROWS_ALLOWED = 0.05
"""The share of rows that may be left out of a dataset that is still `ready`."""

_PROBLEMS_LISTED = 1000
_ROWS_LISTED = 10

_Status = Literal[DatasetStatus.READY, DatasetStatus.INVALID]


class Tally:
    """Problems gathered by code and column, in order of their first row."""

    def __init__(self) -> None:
        self._groups: dict[tuple[ProblemCode, str | None], _Group] = {}
        self.bad_rows = 0
        self.file: Problem | None = None
        self.first: Problem | None = None

    def add(self, problem: Problem) -> None:
        if problem.severity is Severity.FILE:
            self.file = self.file or problem
        elif problem.severity is Severity.ROW:
            self.bad_rows += 1
            self.first = self.first or problem
        key = (problem.code, problem.column)
        if key in self._groups or len(self._groups) < _PROBLEMS_LISTED:
            self._groups.setdefault(key, _Group(problem)).count(problem)

    def reported(self) -> list[ReportedProblem]:
        return [group.reported() for group in self._groups.values()]


@dataclass(slots=True)
class _Group:
    first: Problem
    total: int = 0
    rows: list[int] = field(default_factory=list)

    def count(self, problem: Problem) -> None:
        self.total += 1
        if problem.row is not None and len(self.rows) < _ROWS_LISTED:
            self.rows.append(problem.row)

    def reported(self) -> ReportedProblem:
        first = self.first
        return ReportedProblem(
            code=first.code,
            message=first.message,
            level="warning" if first.severity is Severity.WARNING else "error",
            count=self.total,
            row=first.row,
            line=first.line,
            column=first.column,
            rows=self.rows,
        )


def validate(request: ValidateRequest) -> ValidationReport:
    """Raises `BadMapping` when the user's mapping does not fit the file."""
    tally = Tally()
    try:
        source = open_source(request.source)
    except UnusableFile as unusable:
        tally.add(unusable.problem)
        return ValidationReport(
            status=DatasetStatus.INVALID,
            summary=unusable.problem.message,
            problems=tally.reported(),
            problems_count=1,
        )
    for warning in source.sniffed.warnings:
        tally.add(warning)
    good, columns = _count_rows(source, tally)
    if good + tally.bad_rows == 0 and tally.file is None:
        message = "The file has no rows. Upload a file with at least one row."
        tally.add(Problem(ProblemCode.EMPTY_FILE, message, severity=Severity.FILE))
    status = _status(good, tally, request.strict)
    recognition = source.recognition
    return ValidationReport(
        status=status,
        summary=_summary(status, good, tally, source, request.strict),
        file_format=source.sniffed.file_format,
        compression=source.sniffed.compression,
        schema_kind=recognition.schema_kind if good else None,
        columns=columns,
        row_count=good,
        bad_row_count=tally.bad_rows,
        needs_mapping=recognition.needs_mapping and good > 0,
        mapping=recognition.mapping,
        candidates=list(dict.fromkeys(c.schema_kind for c in recognition.candidates)),
        suggestions=[
            Suggestion(c.schema_kind, c.mapping, c.reason) for c in recognition.candidates
        ],
        problems=tally.reported(),
        problems_count=tally.bad_rows + (tally.file is not None),
    )


def _count_rows(source: OpenSource, tally: Tally) -> tuple[int, list[str]]:
    good = 0
    columns = dict.fromkeys(source.columns)
    for item in source.items:
        if isinstance(item, Problem):
            tally.add(item)
            continue
        for name in item.values:
            if name not in columns and len(columns) < _PROBLEMS_LISTED:
                columns[name] = None
        problem = _problem_of(item, source)
        if problem is None:
            good += 1
        else:
            tally.add(problem)
    return good, list(columns)


def _problem_of(row: Row, source: OpenSource) -> Problem | None:
    if source.plan is None:
        return None
    result = example_of(row, source.plan)
    return result if isinstance(result, Problem) else None


def _status(good: int, tally: Tally, strict: bool) -> _Status:
    share = tally.bad_rows / max(1, good + tally.bad_rows)
    unusable = tally.file is not None or good == 0 or share > BAD_ROWS_ALLOWED
    if unusable or (strict and tally.bad_rows):
        return DatasetStatus.INVALID
    return DatasetStatus.READY


def _summary(status: _Status, good: int, tally: Tally, source: OpenSource, strict: bool) -> str:
    if tally.file is not None:
        return f"{_place(tally.file)}{tally.file.message}"
    total = good + tally.bad_rows
    first = "" if tally.first is None else f" First: {_place(tally.first)}{tally.first.message}"
    if status is DatasetStatus.INVALID:
        reason = (
            "and strict was asked for"
            if strict and tally.bad_rows <= BAD_ROWS_ALLOWED * total
            else f"above the {BAD_ROWS_ALLOWED:.0%} that may be left out"
        )
        share = tally.bad_rows / total
        return (
            f"{tally.bad_rows:,} of {total:,} rows ({share:.1%}) cannot be used, {reason}.{first}"
        )
    if source.recognition.schema_kind is SchemaKind.UNKNOWN:
        return f"{_rows(good)} read. {' '.join(source.recognition.reasons)}"
    if tally.bad_rows:
        return f"{good:,} of {total:,} rows are usable; {tally.bad_rows:,} left out.{first}"
    return f"{_rows(good)} read as {source.recognition.schema_kind}, all usable."


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _place(problem: Problem) -> str:
    parts = [
        f"row {problem.row:,}" if problem.row else "",
        f"line {problem.line:,}" if problem.line else "",
    ]
    if problem.column:
        parts.append(f'column "{problem.column}"')
    place = ", ".join(part for part in parts if part)
    return f"{place[0].upper()}{place[1:]}: " if place else ""
