"""What a plugin that runs on an agent sees of its task: local folders and a way to report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.states import Compression, FailureReason, FileFormat, SchemaKind, TaskPhase
from parsyn.wire.tasks import Failure


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine's disk.

    `path` is a Hugging Face folder (config.json, tokenizer.json, safetensors). `adapter` is a PEFT
    folder to apply to it, with the tokenizer and chat template that it was trained with.
    """

    path: Path
    adapter: Path | None = None
    name: str = ""
    architecture: str | None = None
    context_length: int | None = None

    @property
    def tokenizer_path(self) -> Path:
        """The folder whose tokenizer and chat template count: the adapter's where it has them."""
        if self.adapter and (self.adapter / "tokenizer.json").exists():
            return self.adapter
        return self.path


@dataclass(frozen=True)
class LocalDataset:
    """A dataset file on this machine's disk, and how `parsyn.rows` reads it."""

    path: Path
    file_format: FileFormat
    schema_kind: SchemaKind
    compression: Compression = Compression.NONE
    mapping: Mapping[str, str] | None = None
    name: str = ""


class TaskContext(Protocol):
    """The task's side of the agent. Every method returns at once; nothing waits for the hub."""

    folder: Path
    """An empty folder of this attempt's own; it is removed when the task has ended."""
    device: str
    """`cpu` or `cuda:0`."""
    max_batch_size: int
    trust_remote_code: bool

    def log(self, text: str, level: Literal["debug", "info", "warning", "error"] = "info") -> None:
        """One line for people."""

    def phase(self, phase: TaskPhase, done: int | None = None, total: int | None = None) -> None:
        """What the task does now, with progress inside the phase where it is known."""

    def progress(self, step: int, total_steps: int, epoch: float | None = None) -> None:
        """Training progress; the agent works out percent and ETA. Steps count from 1."""

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Values at a step. A NaN or Inf value raises `TaskFailure(diverged)`."""

    def sample(
        self,
        step: int,
        prompt: Sequence[Mapping[str, Any]],
        text: str,
        reference: str | None = None,
    ) -> None:
        """An answer that the model gave at this step, to prompt messages."""

    def checkpoint(
        self,
        step: int,
        folder: Path,
        *,
        epoch: float | None = None,
        metrics: Mapping[str, float] | None = None,
        best: bool = False,
    ) -> None:
        """Hand over a complete, fsynced folder; the agent hashes, uploads and then deletes it."""

    def cancelled(self) -> bool:
        """True once the task should stop; ask at least once a step, then raise `TaskCancelled`."""


class TaskCancelled(Exception):
    """The task stopped because it was asked to."""


class TaskFailure(ParsynError):
    """The task cannot go on, for a closed reason; `line` said so, `advice` is what to change."""

    def __init__(
        self,
        reason: FailureReason,
        message: str,
        *,
        line: str | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(ErrorCode.INTERNAL, message)
        self.failure = Failure(reason=reason, message=message, line=line, advice=advice)


@dataclass(frozen=True)
class TaskOutcome:
    """What a task leaves: a folder whose files become the result, and facts about it.

    `facts`: see `parsyn.wire.tasks.Manifest`.
    """

    folder: Path | None = None
    facts: dict[str, Any] = field(default_factory=dict)
