"""Every closed set of states, and the transitions that are allowed between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

S = TypeVar("S", bound=StrEnum)


class JobStatus(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


JOB_TRANSITIONS: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.QUEUED, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.QUEUED: frozenset(
        {JobStatus.RUNNING, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}
    ),
    JobStatus.RUNNING: frozenset(
        {JobStatus.QUEUED, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}
    ),
    # A person may resume what failed or was cancelled; it goes back through the queue.
    JobStatus.FAILED: frozenset({JobStatus.QUEUED}),
    JobStatus.CANCELLED: frozenset({JobStatus.QUEUED}),
    JobStatus.COMPLETED: frozenset(),
}
JOB_TERMINAL = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})


class TaskStatus(StrEnum):
    QUEUED = "queued"
    OFFERED = "offered"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TASK_TRANSITIONS: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.QUEUED: frozenset({TaskStatus.OFFERED, TaskStatus.CANCELLED, TaskStatus.FAILED}),
    TaskStatus.OFFERED: frozenset(
        {TaskStatus.RUNNING, TaskStatus.QUEUED, TaskStatus.CANCELLED, TaskStatus.FAILED}
    ),
    TaskStatus.RUNNING: frozenset(
        {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.QUEUED}
    ),
    TaskStatus.FAILED: frozenset({TaskStatus.QUEUED}),
    TaskStatus.CANCELLED: frozenset({TaskStatus.QUEUED}),
    TaskStatus.COMPLETED: frozenset(),
}
TASK_TERMINAL = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED})


class FailureReason(StrEnum):
    USER_ERROR = "user_error"
    BAD_DATA = "bad_data"
    MODEL_UNAVAILABLE = "model_unavailable"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    DIVERGED = "diverged"
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


RETRIED_BY_ITSELF = frozenset(
    {
        FailureReason.WORKER_LOST,
        FailureReason.PREEMPTED,
        FailureReason.DISK_FULL,
        FailureReason.INTERNAL,
    }
)


class JobKind(StrEnum):
    TRAINING = "training"
    EVALUATION = "evaluation"
    EXPORT = "export"
    IMPORT = "import"


class Priority(StrEnum):
    """Which jobs go before others; `high` is for admins."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


LEVELS: Mapping[Priority, int] = {Priority.LOW: -1, Priority.NORMAL: 0, Priority.HIGH: 1}
"""Priorities as they are stored, to be compared."""


def priority_of(level: int) -> Priority:
    return next(priority for priority, known in LEVELS.items() if known == level)


class TaskKind(StrEnum):
    TRAIN = "train"
    EVALUATE = "evaluate"
    EXPORT = "export"
    DOWNLOAD = "download"


class TaskPhase(StrEnum):
    """What a running task is doing now; shown beside its progress bar."""

    DOWNLOADING = "downloading"
    LOADING = "loading"
    TOKENIZING = "tokenizing"
    TRAINING = "training"
    EVALUATING = "evaluating"
    SAVING = "saving"
    MERGING = "merging"
    CONVERTING = "converting"
    QUANTIZING = "quantizing"
    VERIFYING = "verifying"
    UPLOADING = "uploading"


class WorkerStatus(StrEnum):
    OFFLINE = "offline"
    IDLE = "idle"
    TRAINING = "training"
    BUSY = "busy"
    DRAINING = "draining"
    PAUSED = "paused"


class WorkerEventKind(StrEnum):
    """What the history of a worker tells of."""

    CAME = "came"
    WENT = "went"
    REFUSED = "refused"
    FAILED = "failed"
    MEASURED = "measured"
    CHANGED = "changed"


class WorkerType(StrEnum):
    FINE_TUNER = "fine_tuner"
    PROMPTER = "prompter"
    BOTH = "both"


class DatasetStatus(StrEnum):
    VALIDATING = "validating"
    READY = "ready"
    INVALID = "invalid"


class StatsStatus(StrEnum):
    NONE = "none"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class FileFormat(StrEnum):
    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    TEXT = "text"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gz"
    ZSTD = "zst"


class SchemaKind(StrEnum):
    MESSAGES = "messages"
    SHAREGPT = "sharegpt"
    ALPACA = "alpaca"
    PROMPT_COMPLETION = "prompt_completion"
    TEXT = "text"
    PREFERENCE = "preference"
    KTO = "kto"
    PROMPT_ONLY = "prompt_only"
    TOKENIZED = "tokenized"
    UNKNOWN = "unknown"


class ModelState(StrEnum):
    REGISTERED = "registered"
    TRAINING = "training"
    READY = "ready"
    FAILED = "failed"


class ModelSource(StrEnum):
    HUB = "hub"
    UPLOAD = "upload"
    IMPORT = "import"
    TRAINING = "training"


class Role(StrEnum):
    USER = "user"
    ADMIN = "admin"
    OWNER = "owner"


class ProjectRole(StrEnum):
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class Scope(StrEnum):
    """What an API key may do; a session has them all, within its user's role."""

    READ = "read"
    WRITE = "write"
    INFERENCE = "inference"
    WORKERS = "workers"
    ADMIN = "admin"


def sources_of(transitions: Mapping[S, frozenset[S]], target: S) -> list[S]:
    """The states from which `target` may be reached, for a conditional UPDATE."""
    return [source for source, targets in transitions.items() if target in targets]
