"""Machines that are not there: agents without a GPU, on real sockets, that say what GPUs would.

They show pages with many machines. What an agent really does is tested with a real one.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from websockets.exceptions import ConnectionClosed

from parsyn.wire.worker import Benchmark, Hardware, Offer, SystemMetrics, TaskKey
from tests.hub.fake_agent import FakeAgent

GIB = 1 << 30
START_SECONDS = 120
KINDS = (
    ("NVIDIA GeForce RTX 4090", 24, 99.1, 162.0, 905.0),
    ("NVIDIA GeForce RTX 3090", 24, 61.4, 69.0, 820.0),
    ("NVIDIA A100-SXM4-80GB", 80, 158.0, 256.0, 1640.0),
    ("NVIDIA L4", 24, 38.2, 58.0, 262.0),
    (None, 0, 1.6, 0.9, 38.0),
)
"""GPU, GiB of its memory, score, TFLOPS, GB/s: what such machines might say."""


class SimulatedMachine:
    """One agent: enrols, says how fast it is, then how busy, and makes a job last."""

    def __init__(self, url: str, key: str, number: int, pace: float) -> None:
        self.kind = KINDS[number % len(KINDS)]
        self.random = random.Random(number)
        self.pace = pace
        gpu, memory, *_ = self.kind
        hardware = Hardware(
            gpu=gpu, vram_total=memory * GIB or None, cuda="12.8" if gpu else None,
            driver="570.86" if gpu else None, cpu="AMD Ryzen 9 7950X", cores=16, ram=64 * GIB,
            torch="2.12.1", bf16=True, bitsandbytes=gpu is not None, platform="Linux x86_64",
        )  # fmt: skip
        device = "cuda:0" if gpu else "cpu"
        self.agent = FakeAgent(url, key, version="0.1.0", device=device, hardware=hardware)

    async def join(self) -> None:
        await self.agent.connect()
        _, _, score, tflops, bandwidth = self.kind
        await self.agent.send(
            Benchmark(score=score, tflops=tflops, bandwidth_gbs=bandwidth, max_batch=64,
                      measured_at=time.time())
        )  # fmt: skip

    async def live(self) -> None:
        step = 0
        with suppress(ConnectionClosed):
            while True:
                await self.agent.send(self.measured())
                await self.agent.beat()
                for offer in list(self.agent.running.values()):
                    step += 1
                    await self.work(offer, step)
                await asyncio.sleep(self.pace * self.random.uniform(0.8, 1.2))

    async def work(self, offer: Offer, step: int) -> None:
        key = TaskKey(task_id=offer.task_id, attempt=offer.attempt)
        await self.agent.state(key, step % 2000, 2000)
        await self.agent.metric(key, step, loss=2.0 / math.sqrt(step))

    def measured(self) -> SystemMetrics:
        gpu, memory, *_ = self.kind
        busy = bool(self.agent.running)
        use = self.random.uniform(92, 99) if busy else self.random.uniform(0, 4)
        return SystemMetrics(
            at=time.time(),
            gpu_utilization=use if gpu else None,
            vram_used=int(memory * GIB * (0.86 if busy else 0.03)) if gpu else None,
            vram_total=memory * GIB if gpu else None,
            cpu=self.random.uniform(4, 30),
            ram_used=int(self.random.uniform(9, 22) * GIB),
            ram_total=64 * GIB,
            disk_free=412 * GIB,
        )


class SimulatedFleet:
    """Machines in a thread of their own; `pace` is the time between two measurements, in s."""

    def __init__(self, url: str, key: str, count: int, pace: float = 5.0) -> None:
        self.machines = [SimulatedMachine(url, key, number, pace) for number in range(count)]
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def start(self) -> None:
        """All have joined when this returns."""
        self.thread.start()
        self._run(self._join())

    def leave(self, number: int) -> None:
        self._run(self.machines[number].agent.leave())

    def stop(self) -> None:
        for machine in self.machines:
            with suppress(ConnectionClosed):
                self._run(machine.agent.leave())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _join(self) -> None:
        for machine in self.machines:
            await machine.join()
        self.living = [asyncio.create_task(machine.live()) for machine in self.machines]

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(START_SECONDS)
