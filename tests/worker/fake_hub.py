"""A small hub over real sockets: the worker protocol on one port, objects with tickets on another.

It judges the agent as the real one does: keys, sequence numbers, sizes, digests.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import uuid4

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from parsyn.wire.refs import FileRef
from parsyn.wire.worker import (
    Ack,
    CloseCode,
    Heartbeat,
    HeartbeatAck,
    Hello,
    HubMessage,
    Spooled,
    Ticket,
    WantTicket,
    Welcome,
    WorkerMessage,
    worker_messages,
)

M = TypeVar("M")
PATIENCE = 60.0


class FakeHub:
    """`start`, `vanish` and `start` again on the same ports; everything received is kept."""

    def __init__(self) -> None:
        self.keys = {"wkr_good": 1}
        self.enrollment_keys = {"enroll_good"}
        self.refuse_with: tuple[int, str] | None = None
        self.welcome_values: dict[str, Any] = {"heartbeat_seconds": 1.0, "metrics_seconds": 0.2}
        self.acknowledges = True
        self.mute = False
        self.clock_off = 0.0
        self.received: list[WorkerMessage] = []
        self.stored: dict[tuple[int, int], dict[int, Spooled]] = {}
        self.twice: list[Spooled] = []
        self.connections = 0
        self.objects = Objects()
        self.socket: ServerConnection | None = None
        self.port = 0
        self._server: Server | None = None
        self._changed = asyncio.Condition()

    async def start(self) -> None:
        self._server = await serve(
            self._session,
            "127.0.0.1",
            self.port,
            process_request=self._health,
            compression=None,
            ping_interval=None,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        await self.objects.start()

    async def vanish(self) -> None:
        """As a machine that loses its power: no close frame, no answer, nothing listens."""
        if self.socket:
            self.socket.transport.abort()
        if self._server:
            self._server.close(close_connections=False)
            await self._server.wait_closed()
            self._server = None
        await self.objects.stop()

    def fall_silent(self) -> None:
        """As a network that swallows everything: connections open, and no word comes."""
        self.mute = True
        if self.socket:
            self.socket.transport.abort()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws/worker"

    async def send(self, message: HubMessage) -> None:
        assert self.socket is not None
        await self.socket.send(message.model_dump_json())

    async def wait_for(
        self, kind: type[M], matching: Callable[[M], bool] = lambda _: True, after: int = 0
    ) -> M:
        """The first message of that kind, received or still to come."""

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
        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(holds), PATIENCE)
            except TimeoutError:
                raise AssertionError(f"{otherwise}; received: {self._summary()}") from None

    def of(self, kind: type[M]) -> list[M]:
        return [message for message in self.received if isinstance(message, kind)]

    def messages(self, task_id: int, attempt: int = 1) -> list[Spooled]:
        """What was stored of an attempt, in sequence."""
        return [message for _, message in sorted(self.stored.get((task_id, attempt), {}).items())]

    def put_object(self, key: str, data: bytes, path: str | None = None) -> FileRef:
        self.objects.data[key] = data
        digest = hashlib.sha256(data).hexdigest()
        return FileRef(path=path or key.rpartition("/")[2], key=key, size=len(data), sha256=digest)

    # --- inside ------------------------------------------------------------------------------

    def _health(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/health":
            return connection.respond(HTTPStatus.OK, '{"status":"ok","version":"0.1.0"}')
        if request.path != "/ws/worker":
            return connection.respond(HTTPStatus.NOT_FOUND, "no such page")
        return None

    async def _session(self, socket: ServerConnection) -> None:
        self.connections += 1
        if self.mute:
            await socket.wait_closed()
            return
        assert socket.request is not None
        key = socket.request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.refuse_with:
            await socket.close(*self.refuse_with)
        elif key not in self.keys and key not in self.enrollment_keys:
            await socket.close(CloseCode.BAD_CREDENTIAL, "unknown key")
        else:
            await self._serve(socket, key)
        await self._note()

    async def _serve(self, socket: ServerConnection, key: str) -> None:
        hello = worker_messages.validate_json(await socket.recv())
        assert isinstance(hello, Hello)
        own = None
        if key in self.enrollment_keys:
            own = f"wkr_{uuid4().hex}"
            self.keys[own] = len(self.keys) + 1
        welcome = Welcome(
            version="0.1.0",
            worker_id=self.keys[own or key],
            name=hello.name or "worker-1",
            api_key=own,
            **self.welcome_values,
        )
        await socket.send(welcome.model_dump_json())
        self.socket = socket
        await self._keep(hello)
        try:
            async for frame in socket:
                await self._take(socket, worker_messages.validate_json(frame))
        except ConnectionClosed:
            pass

    async def _take(self, socket: ServerConnection, message: WorkerMessage) -> None:
        if isinstance(message, Heartbeat):
            await socket.send(HeartbeatAck(at=time.time() + self.clock_off).model_dump_json())
        elif isinstance(message, WantTicket):
            await socket.send(self.objects.ticket(message).model_dump_json())
        elif isinstance(message, Spooled):
            await self._store(socket, message)
        await self._keep(message)

    async def _store(self, socket: ServerConnection, message: Spooled) -> None:
        kept = self.stored.setdefault((message.task_id, message.attempt), {})
        if message.seq in kept:
            assert kept[message.seq] == message, "one seq stands for two messages"
            self.twice.append(message)
        kept[message.seq] = message
        if self.acknowledges:
            ack = Ack(task_id=message.task_id, attempt=message.attempt, seqs=(message.seq,))
            await socket.send(ack.model_dump_json())

    async def _keep(self, message: WorkerMessage) -> None:
        self.received.append(message)
        await self._note()

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _summary(self) -> list[str]:
        return [str(getattr(message, "type", message)) for message in self.received][-40:]


class Objects:
    """Storage behind tickets, over HTTP/1.1: GET with Range, PUT with Content-Length."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.stale: set[int] = set()
        self.ticket_error: str | None = None
        self.fail_next: list[int] = []
        self.cut_next: list[int] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.port = 0
        self._tickets: dict[str, WantTicket] = {}
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    def ticket(self, want: WantTicket) -> Ticket:
        if self.ticket_error:
            return Ticket(request_id=want.request_id, error=self.ticket_error)
        if want.op == "get" and want.key not in self.data:
            return Ticket(request_id=want.request_id, error="There is no such file.")
        token = uuid4().hex
        key = want.key or f"tasks/{want.task_id}/{want.attempt}/{want.path}"
        self._tickets[token] = want.model_copy(update={"key": key})
        return Ticket(
            request_id=want.request_id,
            url=f"http://127.0.0.1:{self.port}/{token}",
            method="GET" if want.op == "get" else "PUT",
            headers={"X-Ticket": token},
            key=key,
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split()
                headers = await _headers(reader)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.requests.append((method, path, headers))
                if not await self._answer(writer, method, path.strip("/"), headers, body):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(
        self,
        writer: asyncio.StreamWriter,
        method: str,
        token: str,
        headers: dict[str, str],
        body: bytes,
    ) -> bool:
        want = self._tickets.get(token)
        if self.fail_next:
            return await _respond(writer, self.fail_next.pop(0), b"{}")
        if want is None or headers.get("x-ticket") != token:
            return await _respond(writer, 403, b'{"detail":"no such ticket"}')
        if want.task_id in self.stale:
            return await _respond(writer, 409, b'{"code":"stale_attempt"}')
        assert want.key is not None
        if method == "PUT":
            return await self._put(writer, want, body)
        return await self._get(writer, self.data[want.key], headers)

    async def _put(self, writer: asyncio.StreamWriter, want: WantTicket, body: bytes) -> bool:
        assert want.key is not None
        if len(body) != want.size or hashlib.sha256(body).hexdigest() != want.sha256:
            return await _respond(writer, 409, b'{"code":"digest_mismatch","detail":"digest"}')
        self.data[want.key] = body
        return await _respond(writer, 201, b"{}")

    async def _get(
        self, writer: asyncio.StreamWriter, data: bytes, headers: dict[str, str]
    ) -> bool:
        start = int(headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        part = data[start:]
        cut = self.cut_next.pop(0) if self.cut_next else len(part)
        return await _respond(writer, 206 if start else 200, part[:cut], len(part))


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    found = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    return found


async def _respond(
    writer: asyncio.StreamWriter, status: int, body: bytes, length: int | None = None
) -> bool:
    length = len(body) if length is None else length
    writer.write(f"HTTP/1.1 {status} OK\r\nContent-Length: {length}\r\n\r\n".encode() + body)
    await writer.drain()
    return length == len(body)
