"""One case: a fleet at work, what a seed does to it, and what must be true afterwards."""

from __future__ import annotations

import asyncio
import functools
import importlib
import pkgutil
import random
import socket
import time
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

import parsyn.clock
import parsyn.hub
import parsyn.services
import parsyn.store
import parsyn_worker
from parsyn import crash
from parsyn.hub import api_uploads, streaming
from parsyn.jobs.process import use_context
from parsyn.services.context import Context
from parsyn.wire.worker import Hardware, SystemMetrics
from parsyn_worker import backoff, probe, runner, session, spool_thread, transfer
from tests.faults import agent_process
from tests.faults.agent_process import AgentProcess, TrainingChild
from tests.faults.faults import Fault, draw
from tests.faults.hub_process import HubProcess, JobsProcess, Redis, Troubles
from tests.faults.invariants import Lost, check
from tests.faults.network import Connecting, HubTransport, Network
from tests.faults.people import Person
from tests.faults.virtual import CURRENT, InlineThread, Process, VirtualTime, virtual_loop
from tests.faults.witness import Witness
from tests.faults.world import Effects, Template, open_base

PATIENCE = 3000.0
"""Virtual seconds after the last fault by which all must be well."""


class Case:
    """`run` raises Lost, Doubled or Wrong; `story` says what was done to the fleet."""

    def __init__(self, seed: int, template: Template, folder: Path, database: str) -> None:
        self.seed, self.luck = seed, random.Random(f"case {seed}")
        self.template, self.furniture = template, template.furniture
        self.folder, self.database = folder, database
        self.story: list[str] = []
        self.effects = Effects()
        self.gone: set[str] = set()

    def run(self) -> None:
        data = self.folder / "data"
        self.template.copy(data)
        random.seed(self.seed)
        with virtual_loop(self.seed) as self.loop, _stand_ins(self):
            self.base: Context = open_base(data, self.database)
            self.base.plugins.pluggy.register(self.effects, "effects")
            try:
                self.loop.run_until_complete(self._drama())
                self.check()
            finally:
                use_context(None)
                self.base.close()

    def check(self) -> None:
        check(self)

    def tell(self, what: str) -> None:
        self.story.append(f"{self.loop.time() - 1000:7.1f}  {what}")

    # --- the play -----------------------------------------------------------------------------

    async def _drama(self) -> None:
        luck = self.luck
        self.network = Network(self.loop, self.seed)
        self.redis = Redis(self.loop)
        self.troubles = Troubles(self.base)
        self.witness = Witness()
        self.hubs = [
            HubProcess(name, self.base, self.network, self.redis)
            for name in ("hub", "hub-2")[: 2 if luck.random() < 0.2 else 1]
        ]
        for hub in self.hubs:
            hub.witness = self.witness
            await hub.start()
        self.jobs = JobsProcess(self.base, self.redis, self.loop)
        self.jobs.start()
        self.agents = self._agents(luck)
        for agent in self.agents:
            agent.start()
        self.person = Person(self)
        asked = asyncio.ensure_future(self.person.work(luck.randint(1, 3)))
        faults = draw(luck)
        self.harmless = all(fault.harmless for fault in faults)
        await asyncio.gather(*(self._suffer(fault) for fault in faults))
        await self._heal()
        await asyncio.wait({asked}, timeout=PATIENCE)
        if not asked.done():
            raise Lost("the user was given no answer")
        asked.result()
        await self._settle()

    def _agents(self, luck: random.Random) -> list[AgentProcess]:
        names = ["ant", "bee", "cat"][: luck.randint(1, 3)]
        made = [
            AgentProcess(name, self.furniture.workers[name][1], self.folder / name, self.network)
            for name in names
        ]
        if luck.random() < 0.25:
            key = self.furniture.enrollment_key
            made.append(AgentProcess("dog", key, self.folder / "dog", self.network))
        for agent in made:
            agent.folder.mkdir()
            agent.may_not_start = functools.partial(self._is_gone, agent.name)
        return made

    def _is_gone(self, name: str) -> bool:
        return name in self.gone

    async def _suffer(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        self.tell(str(fault))
        await fault.strike(self, fault)

    async def _heal(self) -> None:
        self.tell("all heals")
        self.troubles.heal()
        self.redis.down = False
        for link in self.network.links.values():
            link.heal()
        self.network.flush()
        for hub in self.hubs:
            hub.process.points.clear()
            hub.process.go_on()
            if not hub.process.alive:
                await hub.start()
        self.jobs.process.points.clear()
        if not self.jobs.process.alive:
            self.jobs.start()
        for agent in self.agents:
            agent.disk_full = agent.stubborn = False
            agent.process.points.clear()
            agent.task_points.clear()
            agent.process.go_on()
            for child in agent.children:
                child.own.points.clear()
            if not agent.process.alive and agent.name not in self.gone:
                agent.start()

    async def _settle(self) -> None:
        """Until every job has ended, every effect is brought about and every agent is at rest."""
        deadline = self.loop.time() + PATIENCE
        while not (self.person.all_ended() and self._at_rest()):
            if self.loop.time() > deadline:
                raise Lost(f"not all ended within {PATIENCE:.0f} s: {self._unfinished()}")
            await asyncio.sleep(5.0)
            for agent in self.agents:
                # One that was told to stop while it could not hear stops only now.
                agent.start()
        self.tell("all ended")

    def _at_rest(self) -> bool:
        from parsyn.store.outbox import Outbox

        with self.base.database.connection():
            if Outbox.select().where(Outbox.done_at.is_null()).exists():
                return False
        return not any(self._owes(agent) for agent in self.agents if agent.process.alive)

    def _owes(self, agent: AgentProcess) -> bool:
        made = agent.agent
        if made is None or agent.name in self.person.removed:
            return False
        return bool(made.roster.running()) or made.spool._spool.size() > 0

    def _unfinished(self) -> str:
        from parsyn.store.jobs import Job, Task
        from parsyn.store.outbox import Outbox

        with self.base.database.connection():
            jobs = [(j.id, j.status, j.waiting, j.failure) for j in Job.select()]
            tasks = [(t.id, t.attempt, t.status, t.worker_id) for t in Task.select()]
            rows = Outbox.select().where(Outbox.done_at.is_null()).count()
        owing = [
            (a.name, a.agent.roster.running(), a.agent.spool._spool.size())
            for a in self.agents
            if a.agent is not None and a.process.alive and self._owes(a)
        ]
        return f"jobs {jobs}, tasks {tasks}, {rows} effects, agents {owing}"


# --- what stands for the world outside --------------------------------------------------------


@contextmanager
def _stand_ins(case: Case) -> Iterator[None]:
    """Replace clocks, threads, sockets and the child for as long as a case runs."""
    clock = VirtualTime(case.loop)
    agent_process.CLOCK[:] = [clock]
    replace = mock.patch.object
    with ExitStack() as stack:
        for module in _with_a_clock():
            stack.enter_context(replace(module, "time", clock))
        for target, name, value in (
            (crash, "point", _pass_point),
            (probe, "torch_facts", lambda *_: probe.TorchFacts(torch="2", device_ok=True)),
            (probe, "hardware", lambda *_: Hardware(cpu="virtual", ram=1 << 30, torch="2")),
            (probe, "system_metrics", lambda *_: SystemMetrics(at=clock.time(), cpu=1.0)),
            (session, "Direct", functools.partial(_connect, case)),
            (socket, "getaddrinfo", _no_network),
            (backoff, "LONGEST", 15.0),
            (transfer, "httpx", _http(case)),
            (spool_thread, "ThreadPoolExecutor", InlineThread),
            (runner, "Child", TrainingChild),
            (streaming, "take_body", _take_body),
            (api_uploads, "take_body", _take_body),
        ):
            stack.enter_context(replace(target, name, value))
        yield


@functools.cache
def _with_a_clock() -> list[types.ModuleType]:
    """Every module of the product that looks at a clock, also those that are loaded on demand."""
    found = [parsyn.clock]
    for package in (parsyn.hub, parsyn.services, parsyn.store, parsyn_worker):
        for item in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found.append(importlib.import_module(item.name))
    return [module for module in found if getattr(module, "time", None) is time]


def _pass_point(name: str) -> None:
    process = CURRENT.get()
    if process is not None:
        process.pass_point(name)


def _connect(case: Case, _: str, additional_headers: dict[str, str], **__: Any) -> Connecting:
    process = CURRENT.get()
    assert isinstance(process, Process)
    return Connecting(case.network, process.name, additional_headers)


def _http(case: Case) -> Any:
    def client(**options: Any) -> httpx.AsyncClient:
        process = CURRENT.get()
        transport = HubTransport(case.network, process.name if process else "person")
        return httpx.AsyncClient(transport=transport, trust_env=False, **options)

    return types.SimpleNamespace(**{**vars(httpx), "AsyncClient": client})


def _no_network(*_: Any, **__: Any) -> Any:
    raise AssertionError("the product reached for the real network")


async def _take_body(consume: Any, limit: int, silence: float | None = None) -> Any:
    from quart import request

    body: bytes = await request.get_data()  # type: ignore[assignment]
    assert len(body) <= limit
    return await asyncio.get_running_loop().run_in_executor(None, consume, iter([body]))
