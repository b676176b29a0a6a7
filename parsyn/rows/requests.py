"""What the hub asks the child that reads files, and what it gets back; plain data both ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from parsyn.rows.spans import TrainOn
from parsyn.wire.states import Compression, DatasetStatus, FileFormat, SchemaKind

ESTIMATE = "characters/4"
"""What token counts are without a model's tokenizer."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file on this machine, the name its user gave it, and how its columns are to be read.

    Without `schema_kind` and `mapping` the shape is recognised. Limits are in bytes.
    """

    path: str
    filename: str
    schema_kind: SchemaKind | None = None
    mapping: dict[str, str] | None = None
    total_bytes: int = 64 << 30
    row_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    source: Source
    strict: bool = False
    op: Literal["validate"] = "validate"


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """`model_dir` adds the rendered text and its tokens."""

    source: Source
    offset: int = 0
    limit: int = 20
    model_dir: str | None = None
    train_on: TrainOn = "completions"
    max_length: int | None = None
    op: Literal["preview"] = "preview"


@dataclass(frozen=True, slots=True)
class StatsRequest:
    """Without `model_dir` tokens are estimated as characters / 4."""

    source: Source
    model_dir: str | None = None
    train_on: TrainOn = "completions"
    op: Literal["stats"] = "stats"


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """A conversation as the model's chat template writes it."""

    model_dir: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    op: Literal["render"] = "render"


Request = ValidateRequest | PreviewRequest | StatsRequest | RenderRequest


@dataclass(frozen=True, slots=True)
class ReportedProblem:
    """Rows with the same code and column; `row` and `line` are of the first, `rows` of ten."""

    code: str
    message: str
    level: Literal["error", "warning"]
    count: int
    row: int | None = None
    line: int | None = None
    column: str | None = None
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Suggestion:
    schema_kind: SchemaKind
    mapping: dict[str, str]
    reason: str


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """`problems_count` is the number of bad rows and file errors, warnings left out."""

    status: Literal[DatasetStatus.READY, DatasetStatus.INVALID]
    summary: str
    file_format: FileFormat | None = None
    compression: Compression = Compression.NONE
    schema_kind: SchemaKind | None = None
    columns: list[str] = field(default_factory=list)
    row_count: int = 0
    bad_row_count: int = 0
    needs_mapping: bool = False
    mapping: dict[str, str] | None = None
    candidates: list[SchemaKind] = field(default_factory=list)
    suggestions: list[Suggestion] = field(default_factory=list)
    problems: list[ReportedProblem] = field(default_factory=list)
    problems_count: int = 0


@dataclass(frozen=True, slots=True)
class ShownToken:
    id: int
    text: str
    trained: bool
    special: bool


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """Long values are shortened and end in "…"; `problem` says why a row is left out."""

    row: int
    line: int | None = None
    raw: Any = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    chosen: list[dict[str, Any]] | None = None
    rejected: list[dict[str, Any]] | None = None
    label: bool | None = None
    text: str | None = None
    problem: str | None = None
    rendered: str | None = None
    tokens: list[ShownToken] | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """`template` says whose chat template rendered the rows; `none` without a model."""

    items: list[PreviewRow]
    template: Literal["model", "default", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Histogram:
    """`counts[i]` values lie from `edges[i]` to below `edges[i + 1]`."""

    edges: list[int]
    counts: list[int]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """`trained` tokens are learnt from. `tokenizer` is `model` or the estimate `characters/4`."""

    total: int
    trained: int | None
    mean: float
    p50: int
    p95: int
    max: int
    histogram: Histogram
    tokenizer: str


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Lengths are characters of text, items of lists and objects, values of numbers."""

    type: str
    nulls: int
    min: float | None
    mean: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Duplicates:
    """`exact`: rows that repeat an earlier one."""

    exact: int
    near: int | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    rows: int
    columns: dict[str, ColumnStats]
    tokens: TokenCounts | None
    duplicates: Duplicates
    splits: dict[str, int]


@dataclass(frozen=True, slots=True)
class RenderedChat:
    text: str
    template: Literal["model", "default"]
