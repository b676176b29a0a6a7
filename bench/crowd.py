"""Simulated agents and dashboards that speak the real protocol and remember what they sent and saw.

Every report carries a number of its own (in a field that the hub passes on as it is), so that each
dashboard can be asked afterwards what it saw, when, and how often.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from array import array
from collections.abc import Callable, Coroutine
from typing import Any

from bench.raw_socket import RawSocket, open_socket

HELLO = {
    "type": "hello",
    "version": "0",
    "device": "cuda:0",
    "hardware": {
        "gpu": "NVIDIA GeForce RTX 4090", "vram_total": 25_757_220_864, "cuda": "12.4",
        "driver": "550.54", "cpu": "AMD Ryzen 9 5950X", "cores": 16, "ram": 67_430_000_000,
        "torch": "2.6.0", "bf16": True, "bitsandbytes": True, "platform": "Linux",
    },
}  # fmt: skip
MARK = re.compile(rb'"(?:ram|eta_seconds|loss)":(\d+)|line (\d+)')
SYSTEM, METRIC, STATE, LOG = range(4)


class Ledger:
    """What was sent: for each number when, what kind, and of which job (0: of none)."""

    def __init__(self) -> None:
        self.sent_at = array("d")
        self.kind = array("b")
        self.job = array("l")

    def next(self, kind: int, job: int = 0) -> int:
        self.sent_at.append(time.perf_counter())
        self.kind.append(kind)
        self.job.append(job)
        return len(self.sent_at) - 1

    def __len__(self) -> int:
        return len(self.sent_at)


class Agent:
    """One simulated agent: takes what it is offered and reports as it is told to."""

    def __init__(self, key: str, ledger: Ledger) -> None:
        self.key, self.ledger = key, ledger
        self.instance = f"bench-{key}"
        self.socket: RawSocket | None = None
        self.worker_id = 0
        self.task: tuple[int, int, int] | None = None
        self.unacknowledged: set[int] = set()
        self.closed: list[tuple[int, str]] = []
        self.offered = asyncio.Event()
        self.offered_at = 0.0
        self.on_offer: Callable[[Agent, dict[str, Any]], None] | None = None
        self._welcome: asyncio.Future[None] | None = None
        self._seq = 0
        self.stale = 0

    async def connect(self, port: int) -> None:
        """Until the hub's welcome. Raises OSError where there is none."""
        self._welcome = asyncio.get_running_loop().create_future()
        headers = {"Authorization": f"Bearer {self.key}"}
        self.socket = await open_socket(port, "/ws/worker", headers, self._text, self._closed)
        self.socket.send(json.dumps({**HELLO, "instance": self.instance, "running": self._keys()})
                         .encode())  # fmt: skip
        await self._welcome

    def _keys(self) -> list[dict[str, int]]:
        if self.task is None:
            return []
        return [{"task_id": self.task[0], "attempt": self.task[1]}]

    def _text(self, body: bytes) -> None:
        if body.startswith(b'{"type":"heartbeat_ack"'):
            return
        message = json.loads(body)
        kind = message["type"]
        if kind == "ack":
            self.unacknowledged.difference_update(message["seqs"])
        elif kind == "welcome":
            self.worker_id = message["worker_id"]
            self.stale += len(message["stale"])
            assert self._welcome is not None
            self._welcome.set_result(None)
        elif kind == "offer":
            self.offered_at = time.perf_counter()
            self._accept(message)
        elif kind == "cancel":
            self.stale += message["reason"] == "stale"

    def _accept(self, offer: dict[str, Any]) -> None:
        self.task = (offer["task_id"], offer["attempt"], offer["job_id"])
        self._seq = 0
        self.say("accepted", task_id=offer["task_id"], attempt=offer["attempt"])
        self.offered.set()
        if self.on_offer is not None:
            self.on_offer(self, offer)

    def _closed(self, code: int, reason: str) -> None:
        self.socket = None
        self.closed.append((code, reason))
        if self._welcome is not None and not self._welcome.done():
            self._welcome.set_exception(ConnectionError(f"closed with {code} {reason}"))
            self._welcome.exception()

    def say(self, type: str, **values: Any) -> None:
        if self.socket is not None:
            self.socket.send(json.dumps({"type": type, **values}).encode())

    # --- what it reports ----------------------------------------------------------------------

    def beat(self) -> None:
        self.say("heartbeat", running=self._keys())

    def measure(self) -> None:
        if self.socket is None:
            return
        self.socket.send(
            b'{"type":"system_metrics","at":1.5,"gpu_utilization":97.0,"vram_used":21474836480,'
            b'"vram_total":25757220864,"cpu":12.5,"ram_used":%d,"ram_total":67430000000,'
            b'"disk_free":512000000000}' % self.ledger.next(SYSTEM)
        )

    def _spooled(self, kind: int) -> tuple[bytes, int]:
        assert self.task is not None
        task, attempt, job = self.task
        self._seq += 1
        self.unacknowledged.add(self._seq)
        head = b'"task_id":%d,"attempt":%d,"seq":%d' % (task, attempt, self._seq)
        return head, self.ledger.next(kind, job)

    def metric(self) -> None:
        """The points of one step: a loss that is the report's number, and three more."""
        if self.socket is None or self.task is None:
            return
        head, number = self._spooled(METRIC)
        self.socket.send(
            b'{"type":"metric",%s,"points":[{"step":%d,"at":1.5,"values":{"loss":%d,'
            b'"learning_rate":0.0002,"grad_norm":0.73,"tokens_per_second":1834.5}}]}'
            % (head, self._seq, number)
        )

    def state(self) -> None:
        if self.socket is None or self.task is None:
            return
        head, number = self._spooled(STATE)
        self.socket.send(
            b'{"type":"state",%s,"at":1.5,"phase":"training","step":%d,"total_steps":100000,'
            b'"epoch":0.5,"percent":50.0,"eta":%d}' % (head, self._seq, number)
        )

    def log(self) -> None:
        if self.socket is None or self.task is None:
            return
        head, number = self._spooled(LOG)
        self.socket.send(
            b'{"type":"log",%s,"lines":[{"at":1.5,"level":"info","text":"line %d"}]}'
            % (head, number)
        )


class Dashboard:
    """A browser that watches the fleet, a project and one job, as the web UI does."""

    def __init__(self, ledger: Ledger, topics: tuple[str, ...]) -> None:
        self.ledger, self.topics = ledger, topics
        self.job = next((int(t[4:]) for t in topics if t.startswith("job:")), 0)
        self.seen = bytearray()
        self.delays = array("d")
        self.frames = 0
        self.bytes = 0
        self.told_to_start_over = 0
        self.closed: list[tuple[int, str]] = []
        self.counting = False
        self._snapshots = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, port: int, api_key: str) -> None:
        """Until every topic's snapshot has come."""
        self.socket = await open_socket(port, "/ws/dashboard", {}, self._text, self._closed)
        self.socket.send(json.dumps({"type": "authenticate", "token": api_key}).encode())
        self.socket.send(json.dumps({"type": "subscribe", "topics": self.topics}).encode())
        await self.ready

    def _closed(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))

    def _text(self, body: bytes) -> None:
        if not self.ready.done():
            self._snapshots += body.count(b'"type":"snapshot"')
            if self._snapshots >= len(self.topics):
                self.ready.set_result(None)
        if b'"type":"resubscribe"' in body:
            self.told_to_start_over += 1
        if not self.counting or b'"type":"snapshot"' in body:
            return
        self.frames += 1
        self.bytes += len(body)
        at = time.perf_counter()
        sent_at, seen, delays = self.ledger.sent_at, self.seen, self.delays
        if len(seen) < len(sent_at):
            seen.extend(bytes(len(sent_at) - len(seen) + 1024))
        for first, second in MARK.findall(body):
            number = int(first or second)
            if number < len(sent_at):
                seen[number] += 1
                delays.append(at - sent_at[number])

    def expected(self, number: int) -> int:
        """How often it should have seen a report."""
        kind, job = self.ledger.kind[number], self.ledger.job[number]
        mine = int(job == self.job)
        if kind == SYSTEM:
            return int("fleet" in self.topics)
        if kind == STATE:
            return mine + any(topic.startswith("project:") for topic in self.topics)
        return mine

    def missing(self, since: int, until: int) -> tuple[int, int]:
        """(reports of that range that it did not see, reports that it saw too often)."""
        lost = doubled = 0
        for number in range(since, until):
            saw = self.seen[number] if number < len(self.seen) else 0
            lost += max(0, self.expected(number) - saw)
            doubled += max(0, saw - self.expected(number))
        return lost, doubled


class Lag:
    """How late this process itself was: what is not to be charged to the hub. Seconds."""

    STEP = 0.01

    def __init__(self) -> None:
        self.late: list[float] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self.STEP
            await asyncio.sleep(self.STEP)
            self.late.append(max(0.0, loop.time() - due))


class Rota:
    """Calls each of many, once a period, evenly spread; from one task for all."""

    STEP = 0.005

    def __init__(self) -> None:
        self._rounds: list[tuple[float, list[Callable[[], None]]]] = []

    def add(self, period: float, calls: list[Callable[[], None]]) -> None:
        if calls:
            self._rounds.append((period, calls))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        done = [0] * len(self._rounds)
        while True:
            for place, (period, calls) in enumerate(self._rounds):
                due = int((loop.time() - began) / period * len(calls))
                for number in range(done[place], due):
                    calls[number % len(calls)]()
                done[place] = max(done[place], due)
            await asyncio.sleep(self.STEP)


async def in_groups(calls: list[Coroutine[Any, Any, None]], size: int) -> None:
    """Run all, so many at a time."""
    gate = asyncio.Semaphore(size)

    async def one(call: Coroutine[Any, Any, None]) -> None:
        async with gate:
            await call

    await asyncio.gather(*(one(call) for call in calls))
