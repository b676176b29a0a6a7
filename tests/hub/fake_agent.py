"""An agent without a GPU or a task runner: speaks the real protocol over a real socket.

It keeps what was not acknowledged, as the real one's spool does, and sends it again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from parsyn.wire.refs import FileRef
from parsyn.wire.tasks import Failure, Manifest
from parsyn.wire.worker import (
    Accepted,
    Ack,
    Cancel,
    Checkpoint,
    Heartbeat,
    Hello,
    HubMessage,
    Log,
    LogLine,
    Metric,
    MetricPoint,
    Offer,
    Refused,
    Result,
    Spooled,
    State,
    TaskKey,
    Ticket,
    WantTicket,
    Welcome,
    WorkerMessage,
    hub_messages,
)

M = TypeVar("M")
DEADLINE = 10.0


class FakeAgent:
    """`accepts` takes every offer on. `received` is all that the hub sent, in order."""

    def __init__(self, url: str, key: str, *, accepts: bool = True, **hello: Any) -> None:
        self.http_url = url
        self.url = url.replace("http://", "ws://") + "/ws/worker"
        self.key = key
        self.accepts = accepts
        self.hello_values = {"version": "0", "name": None, **hello}
        self.running: dict[tuple[int, int], Offer] = {}
        self.received: list[HubMessage] = []
        self.spool: dict[tuple[int, int, int], Spooled] = {}
        self.close_code: int | None = None
        self.close_reason = ""
        self._seqs: dict[tuple[int, int], int] = {}
        self._changed = asyncio.Condition()
        self._listener: asyncio.Task[None] | None = None
        self._requests = 0

    # --- connection ---------------------------------------------------------------------------

    async def __aenter__(self) -> FakeAgent:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def connect(self) -> Welcome:
        """Say hello and send again what was not acknowledged. Raises ConnectionClosed."""
        await self.open()
        self.close_code = None
        await self.send(self.hello())
        async with asyncio.timeout(DEADLINE):
            welcome = hub_messages.validate_json(await self.socket.recv())
        assert isinstance(welcome, Welcome), welcome
        self.welcome = welcome
        self.key = welcome.api_key or self.key
        for key in welcome.stale:
            self.running.pop((key.task_id, key.attempt), None)
        self._listener = asyncio.create_task(self._listen())
        for message in list(self.spool.values()):
            await self.send(message)
        return welcome

    async def open(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        self.socket: ClientConnection = await connect(
            self.url, additional_headers=headers, compression=None, proxy=None
        )

    def hello(self) -> Hello:
        keys = tuple(TaskKey(task_id=t, attempt=a) for t, a in self.running)
        return Hello(**{"running": keys, **self.hello_values})

    async def leave(self) -> None:
        """Go away in order."""
        if self._listener:
            await self.socket.close()
            await asyncio.gather(self._listener, return_exceptions=True)

    async def vanish(self) -> None:
        """As a machine that loses its network: no close frame."""
        self.socket.transport.abort()
        if self._listener:
            await asyncio.gather(self._listener, return_exceptions=True)

    async def refusal(self) -> tuple[int, str]:
        """(close code, reason) of a socket that the hub does not keep."""
        async with asyncio.timeout(DEADLINE):
            await self.socket.wait_closed()
        return self.socket.close_code or 0, self.socket.close_reason or ""

    async def send(self, message: WorkerMessage) -> None:
        await self.socket.send(message.model_dump_json())

    async def _listen(self) -> None:
        try:
            async for raw in self.socket:
                await self._take(hub_messages.validate_json(raw))
        except ConnectionClosed:
            pass
        if self.socket.close_code is not None:
            self.close_code = self.socket.close_code
            self.close_reason = self.socket.close_reason or ""
        async with self._changed:
            self._changed.notify_all()

    async def _take(self, message: HubMessage) -> None:
        if isinstance(message, Ack):
            for seq in message.seqs:
                self.spool.pop((message.task_id, message.attempt, seq), None)
        elif isinstance(message, Offer) and self.accepts:
            await self.accept(message)
        elif isinstance(message, Cancel) and message.reason == "stale":
            self.running.pop((message.task_id, message.attempt), None)
        async with self._changed:
            self.received.append(message)
            self._changed.notify_all()

    # --- waiting ------------------------------------------------------------------------------

    async def wait_for(
        self, kind: type[M], matching: Callable[[M], bool] = lambda _: True, after: int = 0
    ) -> M:
        """The first message of a kind, received or still to come."""

        def found() -> M | None:
            for message in self.received[after:]:
                if isinstance(message, kind) and matching(message):
                    return message
            return None

        await self.until(lambda: found() is not None, f"no {kind.__name__} came")
        message = found()
        assert message is not None
        return message

    async def until(self, holds: Callable[[], bool], otherwise: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE), self._changed:
                await self._changed.wait_for(holds)
        except TimeoutError:
            raise AssertionError(f"{otherwise}; received: {self.received}") from None

    async def acknowledged(self) -> None:
        """Everything that must not be lost has arrived for good."""
        await self.until(lambda: not self.spool, "not all was acknowledged")

    async def closed(self) -> tuple[int, str]:
        """(code, reason) once the hub has closed the socket."""
        await self.until(lambda: self.close_code is not None, "the socket stays open")
        assert self.close_code is not None
        return self.close_code, self.close_reason

    # --- tasks --------------------------------------------------------------------------------

    async def offer(self, after: int = 0) -> Offer:
        return await self.wait_for(Offer, after=after)

    async def accept(self, offer: Offer) -> None:
        self.running[(offer.task_id, offer.attempt)] = offer
        await self.send(Accepted(task_id=offer.task_id, attempt=offer.attempt))

    async def refuse(self, offer: Offer, reason: str) -> None:
        await self.send(Refused(task_id=offer.task_id, attempt=offer.attempt, reason=reason))

    async def beat(self) -> None:
        keys = tuple(TaskKey(task_id=t, attempt=a) for t, a in self.running)
        await self.send(Heartbeat(running=keys))

    async def state(self, key: TaskKey, step: int, total: int = 100) -> None:
        await self.keep(
            State, key, at=0.0, phase="training", step=step, total_steps=total,
            percent=100.0 * step / total, eta=float(total - step),
        )  # fmt: skip

    async def log(self, key: TaskKey, *texts: str) -> None:
        lines = tuple(LogLine(at=1.5, text=text) for text in texts)
        await self.keep(Log, key, lines=lines)

    async def metric(self, key: TaskKey, step: int, **values: float) -> None:
        point = MetricPoint(step=step, at=float(step), values=values)
        await self.keep(Metric, key, points=(point,))

    async def checkpoint(
        self, key: TaskKey, step: int, body: bytes = b"weights", **more: Any
    ) -> Checkpoint:
        """Store one file and announce it."""
        file = await self.put(key, f"checkpoints/{step}/model.bin", body + str(step).encode())
        message = await self.keep(Checkpoint, key, at=0.0, step=step, files=(file,), **more)
        assert isinstance(message, Checkpoint)
        return message

    async def complete(
        self, key: TaskKey, files: dict[str, bytes] | None = None, **facts: Any
    ) -> Result:
        """Store the files as the result and say so."""
        refs = [await self.put(key, f"result/{path}", body) for path, body in (files or {}).items()]
        manifest = Manifest(files=tuple(refs), facts=facts)
        return await self.result(key, "completed", manifest=manifest)

    async def fail(self, key: TaskKey, reason: str, message: str = "It broke.") -> Result:
        failure = Failure.model_validate({"reason": reason, "message": message})
        return await self.result(key, "failed", failure=failure)

    async def result(self, key: TaskKey, outcome: str, **more: Any) -> Result:
        self.running.pop((key.task_id, key.attempt), None)
        message = await self.keep(Result, key, at=0.0, outcome=outcome, **more)
        assert isinstance(message, Result)
        return message

    async def keep(self, kind: type[Any], key: TaskKey, **values: Any) -> Spooled:
        """Send a message that is kept until it is acknowledged."""
        pair = (key.task_id, key.attempt)
        seq = self._seqs[pair] = self._seqs.get(pair, 0) + 1
        message: Spooled = kind(task_id=key.task_id, attempt=key.attempt, seq=seq, **values)
        self.spool[(*pair, seq)] = message
        # Without a connection it is sent with the next one.
        with suppress(ConnectionClosed):
            await self.send(message)
        return message

    # --- bytes --------------------------------------------------------------------------------

    async def ticket(self, **want: Any) -> Ticket:
        self._requests += 1
        request_id = f"{id(self)}-{self._requests}"
        await self.send(WantTicket(request_id=request_id, **want))
        return await self.wait_for(Ticket, lambda ticket: ticket.request_id == request_id)

    async def put_ticket(self, key: TaskKey, path: str, body: bytes) -> Ticket:
        return await self.ticket(
            op="put", task_id=key.task_id, attempt=key.attempt, path=path, size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
        )  # fmt: skip

    async def put(self, key: TaskKey, path: str, body: bytes) -> FileRef:
        """Store bytes with a ticket, as the real agent does."""
        ticket = await self.put_ticket(key, path, body)
        assert ticket.key, ticket
        response = await self.upload(ticket, body)
        assert response.status_code == 201, response.text
        return FileRef(
            path=path.partition("/")[2],
            key=ticket.key,
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
        )

    async def upload(self, ticket: Ticket, body: bytes) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE) as http:
            return await http.put(f"{self.http_url}{ticket.url}", content=body)

    async def get(self, key: TaskKey, object_key: str, **headers: str) -> httpx.Response:
        """Fetch an object of the task's spec."""
        ticket = await self.ticket(
            op="get", task_id=key.task_id, attempt=key.attempt, key=object_key
        )
        assert ticket.url, ticket
        async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE) as http:
            return await http.get(f"{self.http_url}{ticket.url}", headers=headers)
