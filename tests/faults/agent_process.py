"""An agent on the virtual loop: the product's own, but for its child, which trains by hashing."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sqlite3
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from parsyn import crash
from parsyn.wire.states import TaskPhase
from parsyn.wire.worker import LogLine, MetricPoint
from parsyn_worker.agent import Agent
from parsyn_worker.config import load_config
from parsyn_worker.events import (
    CancelledEvent,
    CheckpointEvent,
    DoneEvent,
    LogEvent,
    MetricEvent,
    PhaseEvent,
    ProgressEvent,
    TaskOrder,
)
from tests.faults.network import Network
from tests.faults.virtual import CURRENT, Process, VirtualLoop, VirtualTime

STATE = "state.txt"
ADAPTER = "adapter_model.safetensors"


def chain(step: int, before: bytes = b"begin", first: int = 1) -> bytes:
    """What a training is worth after `step` steps, from scratch or from where it was."""
    for n in range(first, step + 1):
        before = hashlib.sha256(before + n.to_bytes(4)).digest()
    return before


def loss_of(state: bytes) -> float:
    return int.from_bytes(state[:4]) / 2**32


class AgentProcess:
    """`parsyn start` in a folder of its own. `troubles` is what its machine does to it."""

    def __init__(self, name: str, key: str, folder: Path, network: Network) -> None:
        self.name, self.key, self.folder, self.network = name, key, folder, network
        self.loop: VirtualLoop = network.loop
        self.process = Process(name)
        self.children: list[TrainingChild] = []
        self.disk_full = False
        self.stubborn = False
        self.pace = 4.0
        self.agent: Agent | None = None
        self.damaged: list[str] = []
        self.broken: list[str] = []
        self.task_points: dict[str, int] = {}
        self.may_not_start: Callable[[], bool] = lambda: False

    def environment(self) -> dict[str, str]:
        own = "WORKER_API_KEY" if self.key.startswith("wkr_") else "WORKER_ENROLLMENT_KEY"
        return {
            "PLATFORM_URL": "ws://hub.example/ws/worker",
            own: self.key,
            "GPU_DEVICE": "cpu",
            "CACHE_DIR": str(self.folder / "cache"),
            "RECONNECT_DELAY": "1",
            "CANCEL_GRACE_SECONDS": "5",
            "BENCHMARK": "false",
        }

    def start(self) -> None:
        if (self.process.alive and self.agent is not None) or self.may_not_start():
            return
        self.process = Process(self.name, skew=self.process.skew)
        self.process.on_death.append(self._died)
        for lock in (self.folder / "cache" / "blobs").glob("*.lock"):
            lock.unlink()  # as the system lets go of what a dead process had locked
        self.loop.begin(self.process, self._run())

    async def _run(self) -> None:
        process = self.process
        environment = self.environment()
        if (self.folder / ".env").exists():
            environment.pop("WORKER_ENROLLMENT_KEY", None)
        self.agent = Agent(load_config(self.folder, environment))
        OWNERS[id(self.process)] = self
        agent = self.agent
        call = agent.spool.call

        async def spool_call(method: Any, *args: Any, **kwargs: Any) -> Any:
            return await call(self._on_a_full_disk(method), *args, **kwargs)

        agent.spool.call = spool_call  # type: ignore[method-assign]
        try:
            await agent.run()
        except Exception:
            if not process.alive:
                return
            self.broken.append(traceback.format_exc()[-1500:])
        process.kill()

    def _on_a_full_disk(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.disk_full and method.__name__ in ("put", "deliver", "begin"):
                raise sqlite3.OperationalError("database or disk is full")
            return method(*args, **kwargs)

        return call

    def _died(self) -> None:
        for child in list(self.children):
            child.own.kill()
        if self.agent is not None:
            self.agent.spool._spool.close()
        self.network.ended(self.process)

    def kill(self) -> None:
        self.process.kill()

    def vanish(self) -> None:
        """A power cut: nobody is told."""
        ended, self.network.ended = self.network.ended, lambda _: None  # type: ignore[method-assign]
        self.process.kill()
        self.network.ended = ended  # type: ignore[method-assign]

    def shut_down(self) -> None:
        if self.agent and self.process.alive:
            self.process.context().run(self.agent.stop)


OWNERS: dict[int, AgentProcess] = {}


class _Status:
    """What of `asyncio.subprocess.Process` the agent looks at."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.over = asyncio.Event()

    async def wait(self) -> int:
        await self.over.wait()
        return self.returncode or 0


class TrainingChild:
    """Stands for `child.Child`: "trains" one link of a chain of hashes a step."""

    def __init__(self, owner: AgentProcess, on_line: Callable[..., None]) -> None:
        self.owner, self.on_line = owner, on_line
        self.own = Process(f"task of {owner.name}", points=owner.task_points)
        owner.task_points = {}
        self.own.on_death.append(self._died)
        self.process = _Status()
        self.tail: deque[str] = deque(maxlen=4)
        self._events: asyncio.Queue[bytes] = asyncio.Queue()
        self._asked_to_stop = False
        owner.children.append(self)

    @classmethod
    async def start(
        cls, module: str, env: Mapping[str, str], on_line: Any, cwd: Path | None = None
    ) -> TrainingChild:
        process = CURRENT.get()
        await asyncio.sleep(0.2)
        return cls(OWNERS[id(process)], on_line)

    async def send(self, line: bytes) -> None:
        order = TaskOrder.model_validate_json(line)
        self.owner.loop.begin(self.own, self._train(order))

    async def events(self) -> AsyncIterator[bytes]:
        while line := await self._events.get():
            yield line

    def terminate(self) -> None:
        self._asked_to_stop = True

    def kill(self) -> None:
        self.own.kill()

    async def close(self) -> int:
        self.own.kill()
        return await self.process.wait()

    def _died(self) -> None:
        if self.process.returncode is None:
            self.process.returncode = crash.STATUS
        if self in self.owner.children:
            self.owner.children.remove(self)
        if self.owner.process.alive:
            self.process.over.set()
            self._events.put_nowait(b"")

    def _emit(self, event: Any) -> None:
        self._events.put_nowait(event.model_dump_json().encode() + b"\n")

    async def _train(self, order: TaskOrder) -> None:
        steps, every = int(order.params["max_steps"]), int(order.params["save_steps"])
        state, first = self._begin(order)
        self._emit(PhaseEvent(phase=TaskPhase.TRAINING))
        for step in range(first, steps + 1):
            await asyncio.sleep(self.owner.pace)
            if self._asked_to_stop and not self.owner.stubborn:
                self._emit(CancelledEvent())
                return
            state = chain(step, state, step)
            self._report(step, steps, state)
            if step % every == 0:
                self._checkpoint(order, step, state)
        folder = order.folder / "model"
        folder.mkdir()
        (folder / "adapter_config.json").write_text("{}")
        (folder / ADAPTER).write_bytes(state)
        self._emit(DoneEvent(folder=folder, facts={"steps": steps}))

    def _begin(self, order: TaskOrder) -> tuple[bytes, int]:
        if order.resume is None:
            return chain(0), 1
        step, _, text = (order.resume / STATE).read_text().partition(" ")
        state = bytes.fromhex(text)
        if state != chain(int(step)):
            self.owner.damaged.append(f"the checkpoint at step {step} is not what was trained")
        return state, int(step) + 1

    def _report(self, step: int, steps: int, state: bytes) -> None:
        at = CLOCK[0].time()
        self._emit(LogEvent(line=LogLine(at=at, text=f"step {step}")))
        values = {"loss": loss_of(state)}
        self._emit(MetricEvent(point=MetricPoint(step=step, at=at, values=values)))
        self._emit(ProgressEvent(step=step, total_steps=steps))

    def _checkpoint(self, order: TaskOrder, step: int, state: bytes) -> None:
        folder = order.folder / f"checkpoint-{step}"
        folder.mkdir()
        (folder / STATE).write_text(f"{step} {state.hex()}")
        (folder / "optimizer.bin").write_bytes(random.randbytes(64))
        target = order.folder.parent / "handed" / f"{folder.name}-{CLOCK[0].time_ns()}"
        target.parent.mkdir(exist_ok=True)
        crash.point("checkpoint.before")
        os.rename(folder, target)
        crash.point("checkpoint.after")
        self._emit(CheckpointEvent(at=CLOCK[0].time(), step=step, folder=target))


CLOCK: list[VirtualTime] = []
"""The clock of the case that runs."""
