"""What lies between agents and hubs: TCP connections with a worker's socket in them, and HTTP."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.frames import Close
from websockets.http11 import Response

from tests.faults.virtual import CURRENT, Process, VirtualLoop

PING_SECONDS = 20.0
OPEN_SECONDS = 20.0
HTTP_READ_SECONDS = 120.0
HTTP_OPEN_SECONDS = 30.0
BROKEN, PING = object(), object()
RETRANSMITS = 900.0


@dataclass
class Link:
    """The way between one agent and the hubs.

    `cut`: nothing gets through and whoever tries is told at once. `holds_up`, `holds_down`: frames
    wait (a half-open connection, seen from either side). `idle`: a proxy that cuts a connection
    after so many seconds of silence. `twice`: a share of frames that come twice. `loses`: a share
    of HTTP exchanges that break, before or after the hub has seen them.
    """

    cut: bool = False
    holds_up: bool = False
    holds_down: bool = False
    delay: float = 0.0
    idle: float | None = None
    twice: float = 0.0
    loses: float = 0.0
    refusing: int | None = None

    def heal(self) -> None:
        self.cut = self.holds_up = self.holds_down = False
        self.delay = self.twice = self.loses = 0.0
        self.idle = self.refusing = None


class Network:
    """`hubs` is what is there to connect to, in the order of a proxy that tries one by one."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.loop, self.luck = loop, random.Random(f"network {seed}")
        self.links: dict[str, Link] = {}
        self.hubs: list[Any] = []
        self.lines: list[Line] = []
        self.own = Process("network")
        self._context = self.own.context()

    def link(self, name: str) -> Link:
        return self.links.setdefault(name, Link())

    def up(self) -> list[Any]:
        return [hub for hub in self.hubs if hub.listening]

    def some_hub(self) -> Any:
        """One that listens; None when all are down."""
        found = self.up()
        return self.luck.choice(found) if found else None

    def later(self, seconds: float, act: Callable[..., None], *args: Any) -> None:
        self.loop.call_later(seconds, act, *args, context=self._context)

    def flush(self) -> None:
        """Something has healed: let go of what was held."""
        for line in list(self.lines):
            line.up.pump()
            line.down.pump()

    def cut(self, name: str) -> None:
        """Break every connection of an agent now."""
        for line in [line for line in self.lines if line.agent_name == name]:
            line.snap()

    def ended(self, process: Process) -> None:
        """A process is gone and its system closes its sockets, or is gone itself."""
        for line in [line for line in self.lines if process in (line.agent, line.hub.process)]:
            line.peer_died(process)


class Pipe:
    """One direction of a connection: in order, each frame after its delay."""

    def __init__(self, line: Line, held: Callable[[], bool], deliver: Callable[[Any], None]):
        self.line, self.held, self.deliver = line, held, deliver
        self.frames: deque[tuple[float, Any]] = deque()
        self.last = 0.0

    def put(self, frame: Any) -> None:
        network = self.line.network
        delay = network.luck.uniform(0, 0.01) + self.line.link.delay * network.luck.random()
        self.last = max(self.last, network.loop.time() + delay)
        self.frames.append((self.last, frame))
        if isinstance(frame, str) and network.luck.random() < self.line.link.twice:
            self.frames.append((self.last, frame))
        network.later(self.last - network.loop.time(), self.pump)

    def pump(self) -> None:
        now = self.line.network.loop.time()
        while self.frames and not self.held() and self.frames[0][0] <= now + 1e-6:
            self.line.used_at = now
            self.deliver(self.frames.popleft()[1])


class Line:
    """A worker's socket, both ends of it."""

    def __init__(self, network: Network, agent_name: str, hub: Any) -> None:
        self.network, self.agent_name, self.hub = network, agent_name, hub
        self.link = network.link(agent_name)
        self.agent = CURRENT.get()
        self.used_at = network.loop.time()
        self.near, self.far = AgentEnd(self), HubEnd(self)
        self.up = Pipe(self, lambda: self.link.holds_up or self.link.cut, self._to_hub)
        self.down = Pipe(self, lambda: self.link.holds_down or self.link.cut, self._to_agent)
        network.lines.append(self)
        network.later(1.0, self._watch)

    def _to_hub(self, frame: Any) -> None:
        context = self.hub.process.context()
        self.network.loop.call_soon(self.far.take, frame, context=context)

    def _to_agent(self, frame: Any) -> None:
        assert self.agent is not None
        self.network.loop.call_soon(self.near.take, frame, context=self.agent.context())

    def snap(self) -> None:
        """Both systems learn that it broke."""
        self.up.frames.clear()
        self.down.frames.clear()
        self._to_hub(BROKEN)
        self._to_agent(BROKEN)
        if self in self.network.lines:
            self.network.lines.remove(self)

    def peer_died(self, process: Process) -> None:
        if process is self.agent:
            self.up.put(BROKEN)
        else:
            self.down.put(BROKEN)

    def _watch(self) -> None:
        """A proxy that cuts what is idle, and TCP itself, which gives up in the end."""
        if self.near.closed and self.far.ended and self in self.network.lines:
            self.network.lines.remove(self)
        if self not in self.network.lines:
            return
        silent = self.network.loop.time() - self.used_at
        if silent > (self.link.idle or RETRANSMITS):
            self.snap()
            return
        self.network.later(1.0, self._watch)


class AgentEnd:
    """What the agent's websockets library gives it."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.frames: asyncio.Queue[Any] = asyncio.Queue()
        self.closed: ConnectionClosedError | None = None
        self.pinged = False

    async def send(self, text: str) -> None:
        if self.closed:
            raise self.closed
        self.line.up.put(text)

    async def recv(self) -> str:
        if self.closed and self.frames.empty():
            raise self.closed
        frame = await self.frames.get()
        if isinstance(frame, str):
            return frame
        self.closed = ConnectionClosedError(frame if isinstance(frame, Close) else None, None)
        raise self.closed

    def take(self, frame: Any) -> None:
        if frame is PING:
            self.pinged = False
            return
        if not isinstance(frame, str) and self.closed is None:
            rcvd = frame if isinstance(frame, Close) else None
            self.closed = ConnectionClosedError(rcvd, None)
        self.frames.put_nowait(frame)

    async def keep_alive(self) -> None:
        """The library's own pings: no answer within 20 s ends the connection."""
        while not self.closed:
            await asyncio.sleep(PING_SECONDS)
            self.pinged = True
            self.line.up.put(PING)
            await asyncio.sleep(PING_SECONDS)
            if self.pinged:
                self.take(BROKEN)

    def leave(self) -> None:
        self.line.up.put(BROKEN)
        self.closed = self.closed or ConnectionClosedError(None, None)


class HubEnd:
    """What the hub's handler has of a socket."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.headers: dict[str, str] = {}
        self.remote_addr = line.agent_name
        self.frames: asyncio.Queue[str] = asyncio.Queue()
        self.handler: asyncio.Task[Any] | None = None
        self.ended = False

    async def accept(self) -> None:
        await asyncio.sleep(0)

    async def receive(self) -> str:
        return await self.frames.get()

    async def send(self, text: str) -> None:
        await asyncio.sleep(0)
        if not self.ended:
            self.line.down.put(text)

    async def close(self, code: int, reason: str = "") -> None:
        if not self.ended:
            self.ended = True
            self.line.down.put(Close(code, reason))

    def take(self, frame: Any) -> None:
        if frame is PING:
            self.line.down.put(PING)
        elif isinstance(frame, str):
            self.frames.put_nowait(frame)
        else:
            # As Quart does when the client is gone: what was not read is lost.
            self.ended = True
            if self.handler:
                self.handler.cancel()


class Connecting:
    """Stands for `websockets.connect`."""

    def __init__(self, network: Network, name: str, headers: dict[str, str]) -> None:
        self.network, self.name, self.headers = network, name, headers
        self.line: Line | None = None
        self.pings: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AgentEnd:
        link = self.network.link(self.name)
        await asyncio.sleep(self.network.luck.uniform(0, 0.02))
        if link.cut:
            raise OSError("[Errno 113] No route to host")
        if link.holds_up or link.holds_down:
            await asyncio.sleep(OPEN_SECONDS)
            raise TimeoutError
        hub = self.network.some_hub()
        if hub is None and link.refusing:
            raise InvalidStatus(Response(link.refusing, "Bad Gateway", Headers()))
        if hub is None:
            raise ConnectionRefusedError("[Errno 111] Connection refused")
        self.line = Line(self.network, self.name, hub)
        self.line.far.headers = self.headers
        hub.take_socket(self.line.far)
        self.pings = asyncio.ensure_future(self.line.near.keep_alive())
        return self.line.near

    async def __aexit__(self, *_: object) -> None:
        assert self.line
        assert self.pings
        self.pings.cancel()
        self.line.near.leave()


class HubTransport(httpx.AsyncBaseTransport):
    """HTTP from one place to whichever hub answers, with the link's faults."""

    def __init__(self, network: Network, name: str) -> None:
        self.network, self.name = network, name

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        link, luck = self.network.link(self.name), self.network.luck
        body = await request.aread()
        await self._open(link, request)
        hub = self.network.some_hub()
        if hub is None:
            raise httpx.ConnectError("[Errno 111] Connection refused", request=request)
        fate = luck.random()
        if fate < link.loses / 2:
            raise httpx.WriteError("the connection broke", request=request)
        if luck.random() < link.twice:
            await self._exchange(hub, request, body, None)
        hangs_up = luck.uniform(0, 0.02) if fate < 0.75 * link.loses else None
        response = await self._exchange(hub, request, body, hangs_up)
        if fate < link.loses or link.cut:
            raise httpx.ReadError("the connection broke", request=request)
        return response

    async def _open(self, link: Link, request: httpx.Request) -> None:
        await asyncio.sleep(self.network.luck.uniform(0, 0.02) + link.delay)
        waited = 0.0
        while link.holds_up or link.holds_down:
            if waited >= HTTP_OPEN_SECONDS:
                raise httpx.ConnectTimeout("no answer", request=request)
            await asyncio.sleep(1.0)
            waited += 1.0
        if link.cut:
            raise httpx.ConnectError("[Errno 113] No route to host", request=request)

    async def _exchange(
        self, hub: Any, request: httpx.Request, body: bytes, hangs_up: float | None
    ) -> httpx.Response:
        answered, handler = hub.answer(request, body)
        try:
            if hangs_up is not None:
                await asyncio.wait({answered}, timeout=hangs_up)
                handler.cancel()
                raise ConnectionResetError
            async with asyncio.timeout(HTTP_READ_SECONDS):
                status, headers, content = await answered
        except TimeoutError:
            raise httpx.ReadTimeout("no answer", request=request) from None
        except ConnectionResetError as error:
            raise httpx.ReadError("the connection broke", request=request) from error
        return httpx.Response(status, headers=headers, content=content, request=request)
