"""What the hub does with each message of an agent. One desk for a connection, messages in order."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from parsyn.clock import now
from parsyn.hub.broker import Connection
from parsyn.hub.chat import router_of
from parsyn.hub.figures import figures_of
from parsyn.hub.fleet import Fleet
from parsyn.hub.hub import Hub
from parsyn.hub.progress import ProgressBook, acknowledge, as_advance
from parsyn.services import leases, presence, reports, tasks, tickets
from parsyn.services.reports import Holding
from parsyn.services.results import Outcome
from parsyn.services.workers import fleet_topic
from parsyn.store.metrics import log_id
from parsyn.wire.api.training import LogEntry, SampleOut
from parsyn.wire.api.workers import WorkerMetrics
from parsyn.wire.events import EventType
from parsyn.wire.worker import (
    Accepted,
    Benchmark,
    Cancel,
    ChatDone,
    Checkpoint,
    CloseCode,
    Heartbeat,
    HeartbeatAck,
    Hello,
    Log,
    Metric,
    MetricPoint,
    Refused,
    Result,
    Sample,
    Spooled,
    State,
    SystemMetrics,
    TaskKey,
    Ticket,
    Token,
    WantTicket,
    WorkerMessage,
)

log = logging.getLogger(__name__)
TEXT_LIMIT = 10_000


class Desk:
    """Takes the messages of one connection, one after the other."""

    def __init__(self, hub: Hub, connection: Connection) -> None:
        self.hub, self.connection = hub, connection
        self.context = hub.context
        self.book = cast("ProgressBook", hub.parts["progress"])
        self.fleet = cast("Fleet", hub.parts["fleet"])
        self.loop = asyncio.get_running_loop()
        self._storing: dict[tuple[int, int], Future[None]] = {}
        self._handlers: dict[type[Any], Callable[[Any], Awaitable[None]]] = {
            Heartbeat: self._heartbeat,
            SystemMetrics: self._system_metrics,
            Benchmark: self._benchmark,
            Accepted: self._accepted,
            Refused: self._refused,
            WantTicket: self._want_ticket,
            Token: self._chat,
            ChatDone: self._chat,
            Hello: self._second_hello,
        }
        self._reports: dict[type[Any], Callable[[Any, Holding], Awaitable[None]]] = {
            State: self._state,
            Log: self._log,
            Metric: self._metric,
            Sample: self._sample,
            Checkpoint: self._checkpoint,
            Result: self._result,
        }

    async def take(self, message: WorkerMessage) -> None:
        """Apply one message. What it raises ends the connection, and the agent sends it again."""
        self.fleet.heard(self.connection)
        if isinstance(message, Spooled):
            await self._report(message)
            return
        # `stored` needs no answer: the hub sees every put itself.
        handler = self._handlers.get(type(message))
        if handler is not None:
            await handler(message)

    # --- of the worker ------------------------------------------------------------------------

    async def _heartbeat(self, message: Heartbeat) -> None:
        connection = self.connection
        if message.draining is not None:
            await self.context.database.write(
                presence.owner_says, self.context, connection.worker_id, message.draining
            )
        connection.outbox.put(HeartbeatAck(at=now()))
        named = {(key.task_id, key.attempt) for key in message.running}
        absent = connection.running - named - connection.spoke
        for task_id, attempt in absent & connection.missing:
            connection.drop(task_id, attempt)
            await self.context.database.write(
                leases.forgotten, self.context, connection.worker_id, task_id, attempt
            )
        connection.missing = absent & connection.running
        connection.spoke.clear()

    async def _system_metrics(self, message: SystemMetrics) -> None:
        # An agent's clock may be wrong; what came now was measured now.
        at = now()
        metrics = WorkerMetrics(
            gpu_utilization=message.gpu_utilization,
            vram_used=message.vram_used,
            vram_total=message.vram_total,
            vram_foreign=message.vram_foreign,
            foreign_processes=message.foreign_processes,
            cpu=message.cpu,
            ram=message.ram_used,
            ram_total=message.ram_total,
            disk_free=message.disk_free,
            at=at,  # type: ignore[arg-type]
        )
        plain = metrics.model_dump(mode="json")
        connection = self.connection
        self.fleet.heard(connection, {**plain, "at": at})
        data = {"id": connection.worker_id, "metrics": plain}
        self.context.bus.publish(EventType.WORKER_METRICS, fleet_topic(connection.project_id), data)
        self.context.metrics.put("machine_points", [(connection.worker_id, at, json.dumps(plain))])

    async def _benchmark(self, message: Benchmark) -> None:
        await self.context.database.write(
            presence.benchmarked, self.context, self.connection.worker_id, message
        )

    async def _second_hello(self, message: Hello) -> None:
        self.connection.outbox.close(CloseCode.BAD_MESSAGE, "A second hello came.")

    async def _chat(self, message: Token | ChatDone) -> None:
        router_of(self.hub).deliver(self.connection.worker_id, message)

    # --- offers -------------------------------------------------------------------------------

    async def _accepted(self, message: Accepted) -> None:
        task = await self.context.database.write(
            tasks.accept, self.context, self.connection.worker_id, message
        )
        if task is None:
            self._drop_stale(message)
            return
        self.connection.running.add((message.task_id, message.attempt))
        self.connection.spoke.add((message.task_id, message.attempt))
        if task.offered_at is not None:
            figures_of(self.hub).accept.observe(max(0.0, now() - task.offered_at))

    async def _refused(self, message: Refused) -> None:
        await self.context.database.write(
            tasks.refuse, self.context, self.connection.worker_id, message, message.reason
        )

    async def _want_ticket(self, message: WantTicket) -> None:
        worker_id = self.connection.worker_id
        try:
            if message.chat_id is not None:
                ticket = self._chat_ticket(message)
            else:
                ticket = await self.context.database.read(
                    tickets.for_task, self.context, worker_id, message
                )
        except tickets.Refusal as error:
            ticket = Ticket(request_id=message.request_id, error=str(error))
        self.connection.outbox.put(ticket)

    def _chat_ticket(self, message: WantTicket) -> Ticket:
        router = router_of(self.hub)
        worker_id, chat_id = self.connection.worker_id, message.chat_id or ""
        if message.op != "get" or not message.key:
            raise tickets.Refusal("A chat may only get files of its model.")
        if not router.may_fetch(worker_id, chat_id, message.key):
            raise tickets.Refusal("This chat is over, or does not need that object.")
        return tickets.for_get(self.context, message.request_id, message.key)

    # --- of tasks -----------------------------------------------------------------------------

    async def _report(self, message: Spooled) -> None:
        key = (message.task_id, message.attempt)
        holding = self.connection.holdings.get(key)
        if holding is None:
            holding = await self.context.database.read(
                reports.holding, self.connection.worker_id, message
            )
            if holding is None:
                self._ack(message)
                self._drop_stale(message)
                return
            self.connection.holdings[key] = holding
        self.connection.spoke.add(key)
        await self._reports[type(message)](message, holding)

    def _ack(self, message: Spooled) -> None:
        self.connection.outbox.ack(message.task_id, message.attempt, message.seq)

    def _drop_stale(self, key: TaskKey) -> None:
        self.connection.drop(key.task_id, key.attempt)
        self.connection.holdings.pop((key.task_id, key.attempt), None)
        self.connection.outbox.put(Cancel(task_id=key.task_id, attempt=key.attempt, reason="stale"))

    async def _state(self, message: State, holding: Holding) -> None:
        progress = self.book.state(self.connection, message)
        self._publish(EventType.JOB_PROGRESS, holding, progress)
        self.context.bus.publish(
            EventType.JOB_PROGRESS,
            f"project:{holding.project_id}",
            {"id": holding.job_id, **progress},
        )

    async def _metric(self, message: Metric, holding: Holding) -> None:
        points = tuple(_finite(point) for point in message.points)
        data = {"points": [point.model_dump() for point in points]}
        self._publish(EventType.JOB_METRICS, holding, data)
        self.book.points(message.task_id, message.attempt, points)
        rows = [
            (holding.job_id, name, point.step, message.attempt, point.at, value)
            for point in points
            for name, value in point.values.items()
        ]
        self._store(message, "metric_points", rows)

    async def _log(self, message: Log, holding: Holding) -> None:
        attempt, seq = message.attempt, message.seq
        lines = [
            (n, line.at, line.level, _storable(line.text)) for n, line in enumerate(message.lines)
        ]
        entries = [
            LogEntry(
                id=log_id(attempt, seq, n),
                at=at,  # type: ignore[arg-type]
                level=level,
                text=text,
                attempt=attempt,
            ).model_dump(mode="json")
            for n, at, level, text in lines
        ]
        self._publish(EventType.JOB_LOG, holding, {"items": entries})
        rows = [(holding.job_id, attempt, seq, *line) for line in lines]
        self._store(message, "log_lines", rows)

    async def _sample(self, message: Sample, holding: Holding) -> None:
        body = {
            "prompt": list(message.prompt),
            "text": message.text,
            "reference": message.reference,
        }
        out = SampleOut(step=message.step, at=message.at, **body)  # type: ignore[arg-type]
        self._publish(EventType.JOB_SAMPLE, holding, out.model_dump(mode="json"))
        row = (holding.job_id, message.attempt, message.seq, message.step, message.at,
               json.dumps(body))  # fmt: skip
        self._store(message, "samples", [row])

    async def _checkpoint(self, message: Checkpoint, holding: Holding) -> None:
        await self._stored_before(message)
        so_far = self.book.take(message.task_id, message.attempt)
        change = as_advance(message.task_id, message.attempt, so_far) if so_far else None
        try:
            known = await self.context.database.write(
                reports.checkpoint, self.context, self.connection.worker_id, message, change
            )
        except BaseException:
            self.book.give_back(message.task_id, message.attempt, so_far)
            raise
        acknowledge(message.task_id, message.attempt, so_far)
        self._ack(message)
        if not known:
            self._drop_stale(message)

    async def _result(self, message: Result, holding: Holding) -> None:
        await self._stored_before(message)
        so_far = self.book.take(message.task_id, message.attempt)
        change = as_advance(message.task_id, message.attempt, so_far) if so_far else None
        try:
            outcome = await self.context.database.write(
                reports.result, self.context, self.connection.worker_id, message, change
            )
        except BaseException:
            self.book.give_back(message.task_id, message.attempt, so_far)
            raise
        acknowledge(message.task_id, message.attempt, so_far)
        self._ack(message)
        self.connection.drop(message.task_id, message.attempt)
        if outcome is Outcome.STALE:
            self._drop_stale(message)

    # --- passing on ---------------------------------------------------------------------------

    def _publish(self, type: EventType, holding: Holding, data: dict[str, Any]) -> None:
        self.context.bus.publish(type, f"job:{holding.job_id}", data)

    def _store(self, message: Spooled, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store and acknowledge after the commit; the next report need not wait for it."""
        done = self.context.metrics.put(table, rows)
        self._storing[(message.task_id, message.attempt)] = done
        done.add_done_callback(
            lambda future: self.loop.call_soon_threadsafe(self._stored, message, future)
        )

    async def _stored_before(self, message: Spooled) -> None:
        """Wait for what the attempt reported before: whoever goes on from its checkpoint, and
        whoever reads of its end, must find all that led there. Raises when it cannot be stored."""
        storing = self._storing.pop((message.task_id, message.attempt), None)
        if storing is not None:
            self.context.metrics.hurry()
            await asyncio.wrap_future(storing)

    def _stored(self, message: Spooled, future: Future[None]) -> None:
        error = future.exception()
        if error is None:
            self._ack(message)
            return
        log.error("reports of task %d could not be stored", message.task_id, exc_info=error)
        self.connection.outbox.close(CloseCode.SERVICE_RESTART, "The hub could not store it.")


def _finite(point: MetricPoint) -> MetricPoint:
    values = {name[:100]: v for name, v in point.values.items() if math.isfinite(v)}
    return MetricPoint(step=point.step, at=point.at, values=values)


def _storable(text: str) -> str:
    """Without NUL, which PostgreSQL does not take, and of bounded length."""
    return text.replace("\0", "")[:TEXT_LIMIT]
