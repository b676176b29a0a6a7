"""Run one task order in a child: its events go to the journal, its end becomes an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from parsyn.wire.states import FailureReason
from parsyn.wire.tasks import Failure
from parsyn_worker.child import Child, Stream
from parsyn_worker.events import (
    CancelledEvent,
    CheckpointEvent,
    DoneEvent,
    FailedEvent,
    LogEvent,
    MetricEvent,
    PhaseEvent,
    ProgressEvent,
    SampleEvent,
    TaskOrder,
    TerminalEvent,
    task_events,
)
from parsyn_worker.failures import died
from parsyn_worker.journal import Journal

OnCheckpoint = Callable[[CheckpointEvent], Awaitable[None]]


class Runner:
    """One child at a time. `stop` may be called at any moment, more than once."""

    def __init__(self, journal: Journal, on_checkpoint: OnCheckpoint, grace: float) -> None:
        self.journal, self.on_checkpoint, self.grace = journal, on_checkpoint, grace
        self._stop = asyncio.Event()
        self.running = False

    def stop(self) -> None:
        """Ask the child to stop; it is killed when it has not within the grace."""
        self._stop.set()

    async def run(self, order: TaskOrder, env: Mapping[str, str]) -> TerminalEvent:
        """The child's own answer, or the failure that its death stands for."""
        self.running = True
        child = await Child.start("parsyn_worker.task", env, self._line, cwd=order.folder)
        stopper = asyncio.create_task(self._stop_when_asked(child))
        answer: TerminalEvent | None = None
        try:
            await child.send(order.model_dump_json().encode())
            answer = await self._follow(child)
        except ConnectionError:
            pass  # it died before it had read its order; its status says why
        finally:
            stopper.cancel()
            if answer is not None:
                await _leave(child)
            status = await child.close()
        if answer is None and self._stop.is_set():
            return CancelledEvent()
        return answer or FailedEvent(failure=died(status, child.tail))

    async def _follow(self, child: Child) -> TerminalEvent | None:
        async for line in child.events():
            try:
                event = task_events.validate_json(line)
            except ValidationError:
                return FailedEvent(failure=_garbled(line))
            if isinstance(event, DoneEvent | FailedEvent | CancelledEvent):
                return event
            if isinstance(event, CheckpointEvent):
                await self.on_checkpoint(event)
            else:
                self._report(event)
        await child.process.wait()
        return None

    def _report(
        self, event: LogEvent | PhaseEvent | ProgressEvent | MetricEvent | SampleEvent
    ) -> None:
        if isinstance(event, LogEvent):
            self.journal.log(event.line.text, event.line.level, event.line.at)
        elif isinstance(event, PhaseEvent):
            self.journal.phase(event.phase, event.done, event.total)
        elif isinstance(event, ProgressEvent):
            self.journal.advance(event.step, event.total_steps, event.epoch)
        elif isinstance(event, MetricEvent):
            self.journal.metric(event.point)
        else:
            self.journal.sample(event)

    def _line(self, stream: Stream, text: str) -> None:
        self.journal.log(text, "info" if stream == "stdout" else "warning")

    async def _stop_when_asked(self, child: Child) -> None:
        await self._stop.wait()
        child.terminate()
        await asyncio.sleep(self.grace)
        self.journal.log("The task did not stop when asked to and is killed.", "warning")
        child.kill()


async def _leave(child: Child) -> None:
    """An answered child may take a moment to go by itself."""
    try:
        await asyncio.wait_for(child.process.wait(), 5)
    except TimeoutError:
        child.kill()


def inside(folder: Path, path: Path) -> bool:
    """Whether `path`, links resolved, lies below `folder`."""
    return path.resolve().is_relative_to(folder.resolve())


def _garbled(line: bytes) -> Failure:
    text = line[:200].decode("utf-8", "replace")
    return Failure(
        reason=FailureReason.INTERNAL, message="The task sent an unreadable event.", line=text
    )
