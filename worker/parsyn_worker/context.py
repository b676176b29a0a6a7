"""The task's side of the agent: what a plugin reports becomes an event on the child's pipe."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from parsyn import crash
from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn.wire.worker import LogLine, MetricPoint
from parsyn_worker.channel import Channel
from parsyn_worker.events import (
    CheckpointEvent,
    LogEvent,
    MetricEvent,
    PhaseEvent,
    ProgressEvent,
    SampleEvent,
    TaskOrder,
)

DIVERGED_ADVICE = "Lower learning_rate, raise warmup_ratio, or look for broken rows in the dataset."


class ChildContext:
    """Implements `parsyn.plugin.task.TaskContext` over a channel."""

    def __init__(self, channel: Channel, order: TaskOrder, stop: threading.Event) -> None:
        self._channel, self._stop = channel, stop
        self.folder: Path = order.folder
        self.device: str = order.device
        self.max_batch_size: int = order.max_batch_size
        self.trust_remote_code: bool = order.trust_remote_code

    def log(self, text: str, level: Literal["debug", "info", "warning", "error"] = "info") -> None:
        self._channel.emit(LogEvent(line=LogLine(at=time.time(), level=level, text=text)))

    def phase(self, phase: TaskPhase, done: int | None = None, total: int | None = None) -> None:
        self._channel.emit(PhaseEvent(phase=phase, done=done, total=total))

    def progress(self, step: int, total_steps: int, epoch: float | None = None) -> None:
        self._channel.emit(ProgressEvent(step=step, total_steps=total_steps, epoch=epoch))

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        plain = {name: float(value) for name, value in values.items()}
        for name, value in plain.items():
            if not math.isfinite(value):
                raise TaskFailure(
                    FailureReason.DIVERGED,
                    f"`{name}` became {value} at step {step}.",
                    line=f"step {step}: {name} = {value}",
                    advice=DIVERGED_ADVICE,
                )
        point = MetricPoint(step=step, at=time.time(), values=plain)
        self._channel.emit(MetricEvent(point=point))

    def sample(
        self,
        step: int,
        prompt: Sequence[Mapping[str, Any]],
        text: str,
        reference: str | None = None,
    ) -> None:
        messages = tuple(dict(message) for message in prompt)
        self._channel.emit(
            SampleEvent(at=time.time(), step=step, prompt=messages, text=text, reference=reference)
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
        self._channel.emit(
            CheckpointEvent(
                at=time.time(),
                step=step,
                folder=self._own(folder),
                epoch=epoch,
                metrics={k: float(v) for k, v in (metrics or {}).items() if math.isfinite(v)},
                best=best,
            )
        )

    def cancelled(self) -> bool:
        return self._stop.is_set()

    def _own(self, folder: Path) -> Path:
        """Move the folder out of the plugin's reach, so that no later clean-up can take it away."""
        target = self.folder.parent / "handed" / f"{folder.name}-{time.time_ns()}"
        target.parent.mkdir(exist_ok=True)
        crash.point("checkpoint.before")
        os.rename(folder, target)
        crash.point("checkpoint.after")
        return target
