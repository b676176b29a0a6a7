"""One attempt of a task on this agent, from the offer to its last word."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from parsyn.wire.states import FailureReason, TaskPhase
from parsyn.wire.tasks import DownloadSpec, Failure
from parsyn.wire.worker import Offer, TaskKey
from parsyn_worker.config import AgentConfig
from parsyn_worker.courier import Courier
from parsyn_worker.environment import child_device, child_environment
from parsyn_worker.events import (
    CancelledEvent,
    DoneEvent,
    FailedEvent,
    TaskOrder,
    TerminalEvent,
)
from parsyn_worker.failures import classify
from parsyn_worker.hub_models import HubModels
from parsyn_worker.inputs import Inputs, WorkSpec
from parsyn_worker.journal import Journal
from parsyn_worker.runner import Runner, inside
from parsyn_worker.snapshot import copy_small_files
from parsyn_worker.transfer import Scope
from parsyn_worker.vram import VramCap


class Stop(StrEnum):
    """Why a task is stopped from outside; decides what its last word is."""

    USER = "user"
    STALE = "stale"
    TIMEOUT = "timeout"
    DRAIN = "drain"
    FENCED = "fenced"
    SHUTDOWN = "shutdown"


_FAILURES: dict[Stop, tuple[FailureReason, str]] = {
    Stop.TIMEOUT: (FailureReason.TIMEOUT, "The task ran longer than this agent allows."),
    Stop.DRAIN: (FailureReason.PREEMPTED, "The agent was asked to stop its work."),
    Stop.SHUTDOWN: (FailureReason.PREEMPTED, "The agent was stopped while the task ran."),
    Stop.FENCED: (
        FailureReason.WORKER_LOST,
        "The agent had no answer from the hub for too long and stopped the task by itself.",
    ),
}
RESTARTED = Failure(
    reason=FailureReason.WORKER_LOST, message="The agent was restarted while the task ran."
)


@dataclass(frozen=True)
class Tools:
    """What every attempt works with; one set for an agent."""

    config: AgentConfig
    device: str
    inputs: Inputs
    hub_models: HubModels
    vram_cap: VramCap


class Attempt:
    """`run` brings the attempt to an answer that is kept for the hub; `stop` hurries it."""

    def __init__(
        self, offer: Offer, tools: Tools, journal: Journal, courier: Courier, folder: Path
    ) -> None:
        self.key = TaskKey(task_id=offer.task_id, attempt=offer.attempt)
        self.offer, self.tools = offer, tools
        self.journal, self.courier, self.folder = journal, courier, folder
        self.stopped: Stop | None = None
        self._halt = asyncio.Event()
        self._runner = Runner(journal, courier.checkpoint, tools.config.cancel_grace)
        courier.on_progress = self._uploading
        courier.on_trouble = lambda text: journal.log(text, "warning")

    def stop(self, why: Stop) -> None:
        """The first reason counts, except that a stale attempt is stale whatever came before."""
        if self.stopped is None or why is Stop.STALE:
            self.stopped = why
        self._halt.set()
        self._runner.stop()

    async def run(self) -> None:
        """Ends when the task's answer is handed to the courier; a stale one has none."""
        _work_folder(self.folder).mkdir(parents=True, exist_ok=True)
        timer = asyncio.get_running_loop().call_later(
            self.tools.config.training_timeout, self.stop, Stop.TIMEOUT
        )
        try:
            answer = await self._answer()
        finally:
            timer.cancel()
        await asyncio.to_thread(self._tidy, answer)
        if self.stopped is not Stop.STALE:
            await self._hand_over(answer)

    async def _answer(self) -> TerminalEvent:
        work = asyncio.create_task(self._work())
        halt = asyncio.create_task(self._halt.wait())
        try:
            await asyncio.wait({work, halt}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not self._runner.running:
                work.cancel()
            return await work
        except asyncio.CancelledError:
            if not self._halt.is_set():
                raise
            return CancelledEvent()
        except Exception as error:
            self.journal.log(f"{type(error).__name__}: {error}", "error")
            return FailedEvent(failure=classify(error))
        finally:
            halt.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _work(self) -> TerminalEvent:
        spec = self.offer.spec
        if isinstance(spec, DownloadSpec):
            return await self._download(spec)
        order = await self._order(spec)
        env = {**child_environment(self.tools.device), **self.tools.vram_cap.environment()}
        return await self._runner.run(order, env)

    async def _order(self, spec: WorkSpec) -> TaskOrder:
        began = time.monotonic()
        self.journal.log(f"Attempt {self.key.attempt} on {self.tools.device}; fetching its files.")
        inputs = await self.tools.inputs.for_task(
            spec, Scope(task=self.key), self.folder / "inputs", self._downloading
        )
        self.journal.log(f"Everything is here after {time.monotonic() - began:.1f} s; starting.")
        self.journal.phase(TaskPhase.LOADING)
        plugin = {"train": "trainer", "evaluate": "evaluator", "export": "exporter"}[spec.kind]
        return TaskOrder(
            kind=spec.kind,
            plugin=getattr(spec, plugin),
            params=spec.params,
            folder=_work_folder(self.folder),
            device=child_device(self.tools.device),
            max_batch_size=self.tools.config.max_batch_size,
            trust_remote_code=self.tools.config.trust_remote_code,
            model=inputs.model,
            dataset=inputs.dataset,
            validation=inputs.validation,
            resume=inputs.resume,
        )

    async def _download(self, spec: DownloadSpec) -> TerminalEvent:
        model = await self.tools.hub_models.download(
            spec.model.hub_id or "", spec.model.revision, self._downloading, self.journal.log
        )
        target = _work_folder(self.folder) / "small"
        await asyncio.to_thread(copy_small_files, model.path, target)
        return DoneEvent(folder=target, facts=model.facts)

    async def _hand_over(self, answer: TerminalEvent) -> None:
        now = time.time()
        if self.stopped in _FAILURES:
            reason, message = _FAILURES[self.stopped]
            failure = Failure(reason=reason, message=message)
            await self.courier.result("failed", now, failure=failure)
        elif self.stopped or isinstance(answer, CancelledEvent):
            await self.courier.result("cancelled", now)
        elif isinstance(answer, FailedEvent):
            self.journal.log(answer.failure.message, "error")
            await self.courier.result("failed", now, failure=answer.failure)
        elif answer.folder and not inside(_work_folder(self.folder), answer.folder):
            await self.courier.result("failed", now, failure=_elsewhere(answer.folder))
        else:
            self.journal.phase(TaskPhase.UPLOADING)
            await self.courier.result("completed", now, folder=answer.folder, facts=answer.facts)

    def _tidy(self, answer: TerminalEvent) -> None:
        """Give back the disk: the last word itself may need some of it."""
        remove_folder(self.folder / "inputs")
        if not isinstance(answer, DoneEvent):
            remove_folder(_work_folder(self.folder))

    def _downloading(self, done: int, total: int) -> None:
        self.journal.phase(TaskPhase.DOWNLOADING, done, total)

    def _uploading(self, done: int, total: int) -> None:
        if self.journal.progress.phase is TaskPhase.UPLOADING:
            self.journal.phase(TaskPhase.UPLOADING, done, total)


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _work_folder(folder: Path) -> Path:
    return folder / "work"


def _elsewhere(folder: Path) -> Failure:
    return Failure(
        reason=FailureReason.INTERNAL,
        message="The plugin left its result outside the task's folder.",
        line=str(folder),
        advice="Write the result below `context.folder`.",
    )
