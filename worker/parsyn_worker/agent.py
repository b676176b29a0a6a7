"""The agent: connects its parts, in the order of a start, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from parsyn import __version__, crash
from parsyn.errors import ParsynError
from parsyn.wire.worker import (
    Cancel,
    Chat,
    ChatCancel,
    Drain,
    Heartbeat,
    HeartbeatAck,
    Hello,
    HubMessage,
    Limits,
    Load,
    Measure,
    Offer,
    SystemMetrics,
    Unload,
    Welcome,
)
from parsyn_worker import probe
from parsyn_worker.attempt import Stop, Tools
from parsyn_worker.benchmark import Yardstick
from parsyn_worker.cache import Cache
from parsyn_worker.chats import Chats
from parsyn_worker.config import ENV_FILE, AgentConfig, write_env
from parsyn_worker.hub_models import HubModels
from parsyn_worker.inputs import Inputs
from parsyn_worker.refusal import Refusal
from parsyn_worker.roster import Roster
from parsyn_worker.runtime import agent_pid
from parsyn_worker.session import Session, clock
from parsyn_worker.spool_thread import SpoolThread
from parsyn_worker.standing import Standing, StandingFile
from parsyn_worker.transfer import Transfer
from parsyn_worker.vram import VramCap

log = logging.getLogger(__name__)

CLOCK_SECONDS = 60.0
"""Beyond this the clocks of hub and agent do not fit, and a line says so."""

GOODBYE_SECONDS = 5.0
"""How long a stopping agent waits for the hub to take its last messages."""


class Agent:
    """One device's agent. `run` returns after `stop`; it must be made inside a running loop."""

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
        self.device = config.device or probe.default_device()
        self.folder = state_folder(config, self.device)
        self.facts = probe.TorchFacts()
        self.welcome: Welcome | None = None
        self.instance = uuid4().hex
        self._stop = asyncio.Event()
        self._owner_says: bool | None = None
        self._told: bool | None = None
        self._clock_told = False
        self._telling: asyncio.Task[None] | None = None
        self.standing = StandingFile(
            config.dir,
            Standing(
                pid=agent_pid(), hub=config.hub.socket, device=self.device, started_at=time.time()
            ),
        )
        self.spool = SpoolThread(self.folder / "spool.db", config.spool_limit)
        self.session = Session(
            config.hub,
            config.key,
            self.spool,
            hello=self._hello,
            beat=self._beat,
            on_open=self._opened,
            on_welcome=self._welcomed,
            on_message=self._received,
            on_down=self._down,
            reconnect_delay=config.reconnect_delay,
            heartbeat=config.heartbeat_interval,
        )
        cache = Cache(config.cache_dir, config.cache_limit)
        self.transfer = Transfer(config.hub, self.session.tickets, cache)
        hub_models = HubModels(config)
        inputs = Inputs(self.transfer, cache, hub_models)
        self.vram_cap = VramCap()
        self.chats = Chats(config, self.device, self.vram_cap, inputs, self.session)
        self.roster = Roster(
            Tools(config, self.device, inputs, hub_models, self.vram_cap),
            self.spool,
            self.session,
            self.transfer,
            self.folder / "tasks",
            self._begins,
            self._changed,
        )
        self.yardstick = Yardstick(
            config,
            self.device,
            hardware=lambda: probe.hardware(self.device, self.facts),
            busy=lambda: self.roster.working() is not None or self.chats.open_count > 0,
            make_room=self._make_room,
            tell=self.session.send,
        )
        self._met = asyncio.Event()
        self._introduced = False

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> None:
        """Start up, work until `stop`, then leave in order."""
        self._announce()
        self.facts = await asyncio.to_thread(probe.torch_facts, self.device, self.config.cache_dir)
        if self.facts.error:
            log.warning("Without torch no task can run: %s.", self.facts.error)
        await self.roster.recover()
        self.standing.update(phase="connecting")
        loops = [
            asyncio.create_task(loop())
            for loop in (
                self.session.run,
                self._introduce,
                self._measure,
                self._fence,
                self.chats.run,
            )
        ]
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({*loops, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await self._say_goodbye()
        finally:
            await self._close([*loops, stopping])
        for loop in loops:
            if not loop.cancelled():
                loop.result()

    # --- start -------------------------------------------------------------------------------

    def _announce(self) -> None:
        config = self.config
        kind = "enrolment key" if config.enrolling else "own key"
        key = config.key
        log.info("Using the %s %s…%s for %s.", kind, key[:8], key[-4:], config.hub.socket)
        if not config.hub.secure and not config.hub.local:
            log.warning("PLATFORM_URL is not encrypted: whoever is on the way can read the key.")

    def _hello(self) -> Hello:
        return Hello(
            version=__version__,
            name=self.config.name,
            worker_type=self.config.worker_type,
            device=self.device,
            max_batch_size=self.config.max_batch_size,
            hardware=probe.hardware(self.device, self.facts),
            trust_remote_code=self.config.trust_remote_code,
            running=self.roster.running(),
            draining=self._owner_says,
            instance=self.instance,
        )

    def _opened(self) -> None:
        log.info("Connected to %s.", self.config.hub.socket)

    def _welcomed(self, welcome: Welcome) -> None:
        self.welcome = welcome
        if welcome.api_key:
            self._enrolled(welcome, welcome.api_key)
        for key in welcome.stale:
            self.roster.stale(key)
        if self.roster.draining and not self._owner_says:
            # It may have been lifted meanwhile; if not, the hub says so next.
            self._drain(False)
        self.yardstick.forget_told()
        if self._introduced:
            self._ready()
        self._met.set()

    async def _introduce(self) -> None:
        """After the first welcome: measure the machine, say what it is, and measure when asked."""
        await self._met.wait()
        await self.yardstick.first()
        assert self.welcome is not None
        who = self.welcome
        log.info("Registered as worker %d (%s): %s.", who.worker_id, who.name, self._self())
        self._introduced = True
        if self.session.connected.is_set():
            self._ready()
        await self.yardstick.run()

    def _ready(self) -> None:
        assert self.welcome is not None
        log.info("Ready.")
        self.standing.update(
            phase=self._phase(),
            worker_id=self.welcome.worker_id,
            name=self.welcome.name,
            error=None,
        )

    def _self(self) -> str:
        hardware = probe.hardware(self.device, self.facts)
        what = hardware.gpu or hardware.cpu
        return f"{self.device}, {what}, {hardware.ram >> 30} GiB memory, torch {hardware.torch}"

    def _enrolled(self, welcome: Welcome, key: str) -> None:
        log.info("Enrolled as %s; the hub gave this agent a key of its own.", welcome.name)
        self.config = replace(self.config, api_key=key)
        path = self.config.dir / ENV_FILE
        crash.point("key.before")
        try:
            write_env(path, {"WORKER_API_KEY": key, "WORKER_ENROLLMENT_KEY": None})
            crash.point("key.after")
        except (OSError, ParsynError) as error:
            log.error(
                "The agent's own key could not be written to %s (%s). It will have to enrol again"
                " after a restart; make the folder writable.",
                path,
                error,
            )

    # --- from the hub ------------------------------------------------------------------------

    def _received(self, message: HubMessage) -> None:
        if isinstance(message, Offer):
            self.roster.offer(message)
        elif isinstance(message, Cancel):
            self.roster.cancel(message)
        elif isinstance(message, Drain):
            self._drain(message.on)
        elif isinstance(message, Limits):
            if self.vram_cap.bytes != message.vram_cap:
                self.vram_cap.bytes = message.vram_cap
                self.chats.start_anew()
        elif isinstance(message, Measure):
            self.yardstick.want()
        elif isinstance(message, HeartbeatAck):
            self._heard(message)
        elif isinstance(message, Chat):
            self.chats.start(message)
            self.yardstick.interrupt()
        elif isinstance(message, ChatCancel):
            self.chats.cancel(message.chat_id)
        elif isinstance(message, Load):
            self.yardstick.interrupt()
            self.chats.load(message.model)
        elif isinstance(message, Unload):
            self.chats.unload(message.model_id)

    def _heard(self, ack: HeartbeatAck) -> None:
        if self._told == self._owner_says:
            self._owner_says = None
        off = time.time() - ack.at
        if abs(off) > CLOCK_SECONDS and not self._clock_told:
            self._clock_told = True
            log.warning(
                "This machine's clock is %.0f s %s the hub's. Work goes on; set the clock.",
                abs(off), "ahead of" if off > 0 else "behind",
            )  # fmt: skip

    def drain(self, on: bool) -> None:
        """Take nothing new (or take work again), as this machine's owner says; the hub is told."""
        self._drain(on)
        self._owner_says = on
        self._telling = asyncio.create_task(self.session.beat())

    def _beat(self) -> Heartbeat:
        self._told = self._owner_says
        return Heartbeat(running=self.roster.running(), draining=self._told)

    def _begins(self) -> None:
        self.yardstick.interrupt()
        self._make_room()

    def _make_room(self) -> None:
        """The device's memory is wanted; a machine's own has room for models that rest."""
        if self.device != "cpu":
            self.chats.make_room()

    def _drain(self, on: bool) -> None:
        log.info("Draining: nothing new is taken." if on else "No longer draining.")
        self.roster.draining = on
        connected = self.session.connected.is_set()
        phase = self._phase() if connected else self.standing.now.phase
        self.standing.update(phase=phase, draining=on)

    def _down(self, refusal: Refusal) -> None:
        log.log(logging.ERROR if refusal.final else logging.WARNING, "%s", refusal.text)
        self.chats.drop_all()
        if refusal.disowned:
            # A hub that will not have this agent back will not take its work either.
            self.roster.stop_working(Stop.FENCED)
        self.standing.update(phase="refused" if refusal.final else "connecting", error=refusal.text)

    # --- loops -------------------------------------------------------------------------------

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(self.welcome.metrics_seconds if self.welcome else 1.0)
            metrics = await asyncio.to_thread(
                probe.system_metrics, self.device, self.config.cache_dir
            )
            await self.session.send(metrics)
            entry = self.roster.working()
            if entry and entry.journal:
                entry.journal.measure(_of_machine(metrics))

    async def _fence(self) -> None:
        """Stop working when the hub has long given this agent's task to another."""
        while True:
            await asyncio.sleep(1.0)
            silent = clock() - self.session.last_answer
            entry = self.roster.working()
            if not self.welcome or silent <= self.welcome.self_fence_seconds or entry is None:
                continue
            if entry.attempt and entry.attempt.stopped is None:
                log.error("No answer from the hub for %.0f s; the task is stopped.", silent)
                entry.attempt.stop(Stop.FENCED)

    # --- end ---------------------------------------------------------------------------------

    async def _say_goodbye(self) -> None:
        log.info("Stopping.")
        self.standing.update(phase="draining")
        await self.roster.shut_down()
        deadline = clock() + GOODBYE_SECONDS
        while self.session.connected.is_set() and clock() < deadline:
            if not self.roster.running() and not await self.spool.pending():
                break
            await asyncio.sleep(0.05)

    async def _close(self, tasks: list[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.roster.close()
        await self.chats.close()
        await self.transfer.close()
        self.spool.close()
        self.standing.update(phase="stopped", tasks=[])
        log.info("Stopped.")

    def _changed(self) -> None:
        tasks = [f"{key.task_id} (attempt {key.attempt})" for key in self.roster.running()]
        self.standing.update(tasks=tasks)

    def _phase(self) -> str:
        return "draining" if self.roster.draining else "ready"


def state_folder(config: AgentConfig, device: str) -> Path:
    """What an agent must find again after a restart; one for each device of a machine."""
    return config.cache_dir / "state" / device.replace(":", "-")


def _of_machine(metrics: SystemMetrics) -> dict[str, float]:
    values = {
        "cpu_utilization": metrics.cpu,
        "ram_used": metrics.ram_used,
        "gpu_utilization": metrics.gpu_utilization,
        "vram_used": metrics.vram_used,
    }
    return {name: float(value) for name, value in values.items() if value is not None}
