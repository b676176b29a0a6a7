"""What a task reports, batched into spooled messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from parsyn.wire.states import TaskPhase
from parsyn.wire.worker import Log, LogLine, Metric, MetricPoint, Sample, TaskKey
from parsyn_worker.events import SampleEvent
from parsyn_worker.progress import Progress
from parsyn_worker.spool_thread import SpoolThread

BATCH_SECONDS = 0.25
STATE_SECONDS = 0.5
MOST_LINES = 1000
"""Log lines that one batch keeps; a task that writes faster has the rest counted, not kept."""

Level = Literal["debug", "info", "warning", "error"]


class Journal:
    """Lines, values and progress of one attempt. Use as `async with`; leaving it flushes."""

    def __init__(self, spool: SpoolThread, key: TaskKey) -> None:
        self.spool, self.key = spool, key
        self.progress = Progress()
        self._lines: list[LogLine] = []
        self._points: list[MetricPoint] = []
        self._samples: list[SampleEvent] = []
        self._left_out = self._measured = 0
        self._moved = True
        self._state_at = 0.0
        self._writer: asyncio.Task[None] | None = None
        self._flushing = asyncio.Lock()

    async def __aenter__(self) -> Journal:
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writer:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def log(self, text: str, level: Level = "info", at: float | None = None) -> None:
        if len(self._lines) >= MOST_LINES:
            self._left_out += 1
            return
        self._lines.append(LogLine(at=at or time.time(), level=level, text=text))

    def metric(self, point: MetricPoint) -> None:
        self._points.append(point)

    def measure(self, values: Mapping[str, float]) -> None:
        """Values of the machine, at most once for the step the task is at."""
        step = self.progress.step
        if step and step != self._measured:
            self._measured = step
            self.metric(MetricPoint(step=step, at=time.time(), values=dict(values)))

    def sample(self, sample: SampleEvent) -> None:
        self._samples.append(sample)

    def phase(self, phase: TaskPhase, done: int | None = None, total: int | None = None) -> None:
        self.progress.enter(phase, done, total)
        self._moved = True

    def advance(self, step: int, total_steps: int, epoch: float | None) -> None:
        self.progress.advance(step, total_steps, epoch, time.time())
        self._moved = True

    async def flush(self) -> None:
        """Everything that was reported is in the spool when this returns."""
        async with self._flushing:
            await self._flush_logs()
            await self._flush_metrics()
            await self._flush_samples()
            if self._moved:
                await self._flush_state()

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            async with self._flushing:
                await self._flush_logs()
                await self._flush_metrics()
                await self._flush_samples()
                if self._moved and time.monotonic() - self._state_at >= STATE_SECONDS:
                    await self._flush_state()

    async def _flush_logs(self) -> None:
        lines, self._lines = self._lines, []
        left_out, self._left_out = self._left_out, 0
        if left_out:
            text = f"… {left_out} more lines were written faster than they can be kept."
            lines.append(LogLine(at=time.time(), level="warning", text=text))
        if lines:
            await self.spool.put(self.key, lambda seq: Log(**self._at(seq), lines=tuple(lines)))

    async def _flush_metrics(self) -> None:
        points, self._points = self._points, []
        if points:
            await self.spool.put(
                self.key, lambda seq: Metric(**self._at(seq), points=tuple(points))
            )

    async def _flush_samples(self) -> None:
        samples, self._samples = self._samples, []
        for item in samples:
            await self.spool.put(self.key, partial(self._sample, item))

    def _sample(self, event: SampleEvent, seq: int) -> Sample:
        return Sample(**self._at(seq), **event.model_dump(exclude={"type"}))

    async def _flush_state(self) -> None:
        self._moved, self._state_at = False, time.monotonic()
        now = time.time()
        await self.spool.put(self.key, lambda seq: self.progress.state(self.key, seq, now))

    def _at(self, seq: int) -> dict[str, Any]:
        return {"task_id": self.key.task_id, "attempt": self.key.attempt, "seq": seq}
