"""The demo's screen: one line a step, with a bar where there is progress."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

WIDTH = 28
FULL, EMPTY = "#", "."


class Screen:
    """Writes to `stream`; on a terminal the running step's line is redrawn in place."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self.stream = stream
        self.live = stream.isatty()
        self._title = ""
        self._began = 0.0
        self._last = ""

    def step(self, title: str) -> None:
        """Begin a step."""
        self._title = title
        self._began = time.monotonic()
        self._last = ""
        if self.live:
            self._draw(f"  {title} …")

    def watch(self, job: dict[str, Any]) -> None:
        """Show how a job goes: bar, step, loss, tokens/s, ETA."""
        progress = job.get("progress") or job
        percent = progress.get("percent")
        parts = [str(progress.get("phase") or job.get("waiting") or job["status"])]
        if progress.get("total_steps"):
            parts.append(f"step {progress.get('step') or 0}/{progress['total_steps']}")
        latest = job.get("metrics_latest") or {}
        if "loss" in latest:
            parts.append(f"loss {latest['loss']:.3f}")
        if "tokens_per_second" in latest:
            parts.append(f"{latest['tokens_per_second']:.0f} tokens/s")
        if progress.get("eta_seconds") is not None:
            parts.append(f"{_clock(progress['eta_seconds'])} left")
        self._show(percent, ", ".join(parts))

    def _show(self, percent: float | None, text: str) -> None:
        bar = ""
        if percent is not None:
            full = round(WIDTH * percent / 100)
            bar = f"[{FULL * full}{EMPTY * (WIDTH - full)}] {percent:3.0f} %  "
        if self.live:
            self._draw(f"  {self._title}  {bar}{text}")
        else:
            # A log gets a line at every tenth, not at every look.
            mark = f"{int((percent or 0) // 10)}{text.split(',')[0]}"
            if mark != self._last:
                self._last = mark
                self.stream.write(f"    {bar}{text}\n")
                self.stream.flush()

    def done(self, result: str) -> None:
        """End the step with what came of it."""
        seconds = time.monotonic() - self._began
        line = f"  {self._title}: {result}  ({seconds:.0f} s)"
        if self.live:
            self._draw(line)
            self.stream.write("\n")
        else:
            self.stream.write(f"{line}\n")
        self.stream.flush()

    def _draw(self, line: str) -> None:
        self.stream.write(f"\r\x1b[2K{line}")
        self.stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
