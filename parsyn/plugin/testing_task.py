"""A task context for tests: it writes down what it is told; its folder is real."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from parsyn.wire.states import TaskPhase


@dataclass
class Checkpoint:
    step: int
    folder: Path
    metrics: dict[str, float]
    best: bool


@dataclass
class RecordingContext:
    """`cancel_when` is asked at each `cancelled()`; checkpoints are moved away as an agent does."""

    folder: Path
    device: str = "cpu"
    max_batch_size: int = 32
    trust_remote_code: bool = False
    cancel_when: Callable[[RecordingContext], bool] = lambda context: False
    logs: list[str] = field(default_factory=list)
    phases: list[TaskPhase] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    metrics: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)

    def log(self, text: str, level: Literal["debug", "info", "warning", "error"] = "info") -> None:
        self.logs.append(text)

    def phase(self, phase: TaskPhase, done: int | None = None, total: int | None = None) -> None:
        if not self.phases or self.phases[-1] is not phase:
            self.phases.append(phase)

    def progress(self, step: int, total_steps: int, epoch: float | None = None) -> None:
        self.steps.append((step, total_steps))

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        self.metrics.append((step, dict(values)))

    def sample(
        self,
        step: int,
        prompt: Sequence[Mapping[str, Any]],
        text: str,
        reference: str | None = None,
    ) -> None:
        self.samples.append(
            {"step": step, "prompt": list(prompt), "text": text, "reference": reference}
        )

    def checkpoint(
        self,
        step: int,
        folder: Path,
        *,
        epoch: float | None = None,
        metrics: Mapping[str, float] | None = None,
        best: bool = False,
    ) -> None:
        target = self.folder.with_name(f"{self.folder.name}-checkpoint-{step}")
        os.rename(folder, target)
        self.checkpoints.append(Checkpoint(step, target, dict(metrics or {}), best))

    def cancelled(self) -> bool:
        return self.cancel_when(self)

    def values(self, name: str) -> list[float]:
        return [values[name] for _, values in self.metrics if name in values]
