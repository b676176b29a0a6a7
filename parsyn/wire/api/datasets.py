"""Uploads and datasets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from parsyn.wire.api.base import In, Name, Out, Time
from parsyn.wire.states import (
    Compression,
    DatasetStatus,
    FileFormat,
    SchemaKind,
    StatsStatus,
)


class UploadIn(In):
    filename: str = Field(min_length=1, max_length=255)
    size: int = Field(ge=0)
    purpose: Literal["dataset", "model"] = "dataset"
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class PartOut(Out):
    n: int
    size: int
    sha256: str


class UploadOut(Out):
    id: int
    filename: str
    size: int
    purpose: Literal["dataset", "model"]
    part_size: int
    parts_total: int
    status: Literal["open", "complete", "aborted"]
    direct: bool
    sha256: str | None
    expires_at: Time
    received: list[PartOut] = []


class UploadCompleteIn(In):
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class DatasetIn(In):
    name: Name
    upload_id: int
    project_id: int | None = None
    format: Literal["auto", "jsonl", "json", "csv", "parquet", "text"] = "auto"
    mapping: dict[str, str] | None = None
    strict: bool = False


class DatasetPatch(In):
    """A new mapping validates the file again."""

    name: Name | None = None
    mapping: dict[str, str] | None = None
    strict: bool | None = None


class HistogramOut(Out):
    """`counts[i]` values lie in `edges[i]` (included) to `edges[i + 1]` (excluded)."""

    edges: list[float]
    counts: list[int]


class TokenStats(Out):
    """`trained` tokens are learnt from. `tokenizer` is a model's name, or `characters/4`."""

    total: int
    trained: int | None = None
    mean: float
    p50: float
    p95: float
    max: int
    histogram: HistogramOut
    tokenizer: str


class DuplicateStats(Out):
    exact: int
    near: int | None = None


class StatsOut(Out):
    rows: int
    columns: dict[str, dict[str, Any]]
    tokens: TokenStats | None = None
    duplicates: DuplicateStats
    splits: dict[str, int] = {}


class MappingSuggestion(Out):
    """One way to read the columns: field → column, and why it may be meant."""

    schema_kind: SchemaKind
    mapping: dict[str, str]
    reason: str


class DatasetOut(Out):
    id: int
    name: str
    project_id: int
    user_id: int
    status: DatasetStatus
    file_format: FileFormat | None
    compression: Compression
    filename: str
    schema_kind: SchemaKind | None
    needs_mapping: bool
    mapping: dict[str, str] | None
    candidates: list[SchemaKind] = []
    suggestions: list[MappingSuggestion] = []
    strict: bool
    columns: list[str]
    row_count: int | None
    bad_row_count: int | None
    size: int
    sha256: str
    parent_id: int | None
    operation: str | None
    stats_status: StatsStatus
    stats: StatsOut | None
    problems_count: int
    summary: str | None
    created_at: Time


class RowProblem(Out):
    """`row` counts from 1; `count` says how many rows have it, this being the first."""

    row: int | None
    line: int | None
    column: str | None
    code: str
    message: str
    count: int
    level: Literal["error", "warning"] = "error"


class ReportOut(Out):
    summary: str
    problems: list[RowProblem]


class PreviewToken(Out):
    id: int
    text: str
    trained: bool
    special: bool


class PreviewRow(Out):
    row: int
    line: int | None = None
    raw: Any
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    label: bool | None = None
    chosen: list[dict[str, Any]] | None = None
    rejected: list[dict[str, Any]] | None = None
    text: str | None = None
    problem: str | None = None
    rendered: str | None = None
    tokens: list[PreviewToken] | None = None


class PreviewOut(Out):
    """`template` says where the chat template came from: model, default, none."""

    items: list[PreviewRow]
    total: int | None
    template: str | None = None
