"""How fast this machine is: measured in a child, kept for a day, never while anything else runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parsyn.wire.worker import Benchmark, Hardware
from parsyn_worker.child import Child, Stream
from parsyn_worker.config import AgentConfig
from parsyn_worker.environment import child_environment

log = logging.getLogger(__name__)

LIMIT_SECONDS = 60.0
FRESH_SECONDS = 24 * 3600.0
FALLBACK_FRESH_SECONDS = 3600.0
"""What could not be measured is tried again sooner."""
LOOK_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""After a task or chat: the next one may come soon, and wants its model still in memory."""
METHOD = 1
"""Grows with the way of measuring, so that older figures are not compared with newer ones."""


@dataclass(frozen=True)
class Figures:
    """FP16 TFLOPS (dense, FP32 accumulation), GB/s, bytes of GPU memory."""

    tflops: float
    bandwidth_gbs: float
    vram: float


REFERENCE = Figures(tflops=165.2, bandwidth_gbs=1008.0, vram=24 * 2**30)
"""RTX 4090: NVIDIA Ada GPU Architecture whitepaper V2.02, appendix A. Of its two FP16 tensor rates
the one with FP32 accumulation, which is how torch multiplies."""
WEIGHTS = Figures(tflops=0.5, bandwidth_gbs=0.3, vram=0.2)

ASSUMED_GPU: Mapping[str, Any] = {"tflops": 5.0, "bandwidth_gbs": 100.0, "max_batch": 1}
ASSUMED_CPU: Mapping[str, Any] = {"tflops": 0.02, "bandwidth_gbs": 5.0, "max_batch": 1}
"""For what was not measured in time: below any device that is worth its power."""


def score_of(tflops: float, bandwidth_gbs: float, vram: float) -> float:
    """100 is an RTX 4090. A machine without GPU has no `vram`, whatever its memory."""
    return 100 * (
        WEIGHTS.tflops * tflops / REFERENCE.tflops
        + WEIGHTS.bandwidth_gbs * bandwidth_gbs / REFERENCE.bandwidth_gbs
        + WEIGHTS.vram * vram / REFERENCE.vram
    )


def benchmark_of(measured: Mapping[str, Any], vram: int | None, at: float) -> Benchmark:
    """What the hub is told; figures that are missing are assumed, and that is said."""
    assumed = ASSUMED_CPU if vram is None else ASSUMED_GPU
    figures = {**assumed, **measured}
    return Benchmark(
        score=round(score_of(figures["tflops"], figures["bandwidth_gbs"], vram or 0), 2),
        tflops=round(figures["tflops"], 3),
        bandwidth_gbs=round(figures["bandwidth_gbs"], 2),
        max_batch=figures["max_batch"],
        precision=figures.get("precision"),
        fallback=not assumed.keys() <= measured.keys(),
        measured_at=at,
    )


class Yardstick:
    """Holds the latest benchmark and makes a new one where that is wanted.

    `busy` says whether a task or chat runs; `tell` sends a benchmark and says whether it arrived.
    `interrupt` must be called when one begins: what is measured beside it would be wrong, and a
    GPU's memory is needed.
    """

    def __init__(
        self,
        config: AgentConfig,
        device: str,
        hardware: Callable[[], Hardware],
        busy: Callable[[], bool],
        make_room: Callable[[], None],
        tell: Callable[[Benchmark], Awaitable[bool]],
    ) -> None:
        self.config, self.device = config, device
        self._hardware, self._busy, self._tell = hardware, busy, tell
        self._make_room = make_room
        self.latest: Benchmark | None = None
        self._wanted = asyncio.Event()
        self._told = False
        self._child: Child | None = None
        self._interrupted = False
        self._disturbed_at = -QUIET_SECONDS

    def want(self) -> None:
        """A fresh one, as soon as nothing runs."""
        if self.config.benchmark:
            self._wanted.set()
        else:
            log.info("GPU benchmark: asked for, but turned off (BENCHMARK=false).")

    def interrupt(self) -> None:
        """A task or chat begins: it goes first, and the measuring begins anew after it."""
        self._interrupted = True
        self._disturbed_at = time.monotonic()
        if self._child is not None:
            self._child.kill()

    async def first(self) -> None:
        """At the start: the kept one, else a new one if nothing runs yet. Logs what came of it."""
        if not self.config.benchmark:
            log.info("GPU benchmark: turned off (BENCHMARK=false).")
            return
        identity = self._identity()
        if identity["torch"] is None:
            log.info("GPU benchmark: not possible without torch.")
            return
        kept = await asyncio.to_thread(read_kept, self._file, identity, time.time())
        if kept is None:
            self._wanted.set()
            await self._measure()
        else:
            self.latest = kept
            log.info("GPU benchmark: %s (cached).", in_words(kept))
        await self._send()

    async def run(self) -> None:
        """Measure whenever it is wanted and nothing runs, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_SECONDS)
            if self._wanted.is_set():
                await self._measure_when_idle()
            await self._send()

    async def _measure_when_idle(self) -> None:
        if self._busy():
            self._disturbed_at = time.monotonic()
        quiet = time.monotonic() - self._disturbed_at
        if quiet < QUIET_SECONDS or self._identity()["torch"] is None:
            await asyncio.sleep(LOOK_SECONDS)
        else:
            await self._measure()

    def forget_told(self) -> None:
        """Another hub process, or another database, may be there now: tell it again."""
        self._told = False

    async def _send(self) -> None:
        if self.latest is not None and not self._told:
            self._told = await self._tell(self.latest)

    # --- inside ------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        name = f"benchmark-{self.device.replace(':', '-')}.json"
        return self.config.cache_dir / "state" / name

    def _identity(self) -> dict[str, Any]:
        hardware = self._hardware()
        return {
            "method": METHOD,
            "device": hardware.gpu or hardware.cpu,
            "driver": hardware.driver,
            "torch": hardware.torch,
        }

    async def _measure(self) -> None:
        started = time.time()
        measured = None if self._busy() else await self._ask_child()
        if measured is None:
            log.info("GPU benchmark: put off, a task goes first.")
            return
        self._wanted.clear()
        found = benchmark_of(measured, self._hardware().vram_total, time.time())
        log.info("GPU benchmark: %s, in %.1f s.", in_words(found), time.time() - started)
        self.latest, self._told = found, False
        await asyncio.to_thread(keep, self._file, self._identity(), found)

    async def _ask_child(self) -> dict[str, Any] | None:
        """The figures that came in time; None where a task or chat came between."""
        figures: dict[str, Any] = {}

        def take(stream: Stream, line: str) -> None:
            if stream == "stdout":
                figures.update(_figures(line))

        self._interrupted = False
        self._make_room()
        env = child_environment(self.device)
        child = self._child = await Child.start("parsyn_worker.torch_benchmark", env, take)
        try:
            if self._interrupted:
                return None
            with contextlib.suppress(TimeoutError, ConnectionError):
                await child.send(self.device.encode())
                await asyncio.wait_for(child.process.wait(), LIMIT_SECONDS)
        finally:
            self._child = None
            status = await child.close()
        if self._interrupted:
            return None
        if status:
            last = child.tail[-1] if child.tail else f"ended with {status}"
            log.warning("The benchmark did not end in time or broke: %s", last)
        return figures


def _figures(line: str) -> dict[str, Any]:
    """The known figures of a line; nothing where libraries printed it."""
    with contextlib.suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict):
            known = ("precision", "tflops", "bandwidth_gbs", "max_batch")
            return {name: said[name] for name in known if name in said}
    return {}


def in_words(found: Benchmark) -> str:
    if found.fallback:
        return f"it could not be measured, a score of {found.score:.2g} is assumed"
    return (
        f"score {found.score:.3g} ({found.tflops:.3g} TFLOPS in {found.precision},"
        f" {found.bandwidth_gbs:.3g} GB/s, batches of {found.max_batch})"
    )


def read_kept(file: Path, identity: Mapping[str, Any], at: float) -> Benchmark | None:
    """The kept benchmark of the same device, driver and torch, if it is still fresh at `at`."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_text())
        found = Benchmark.model_validate(kept["benchmark"])
        fresh = FALLBACK_FRESH_SECONDS if found.fallback else FRESH_SECONDS
        if kept["identity"] == identity and 0 <= at - found.measured_at < fresh:
            return found
    return None


def keep(file: Path, identity: Mapping[str, Any], found: Benchmark) -> None:
    """Keep it for the next start; a full disk is no reason to fail."""
    body = json.dumps({"identity": identity, "benchmark": found.model_dump(mode="json")})
    draft = file.with_suffix(".new")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(body)
        draft.replace(file)
