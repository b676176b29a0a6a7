"""`/ws/worker`: the handshake and the two loops of an agent's socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Coroutine
from typing import Any, Literal

from pydantic import ValidationError
from quart import Quart, Websocket, websocket

from parsyn import crash
from parsyn.hub.broker import Broker, Connection, close_reason
from parsyn.hub.chat import router_of
from parsyn.hub.fleet import Fleet
from parsyn.hub.hub import Hub
from parsyn.hub.members import Members
from parsyn.hub.progress import ProgressBook
from parsyn.hub.relay import Relay
from parsyn.hub.sockets import BoundedSocket
from parsyn.hub.worker_desk import Desk
from parsyn.services import enrollment, presence
from parsyn.services.asking import Asking, asking
from parsyn.services.enrollment import Refused
from parsyn.services.presence import Arrival
from parsyn.wire.refs import Frozen
from parsyn.wire.worker import (
    PROTOCOL,
    Ack,
    CloseCode,
    Hello,
    HubMessage,
    WorkerMessage,
    is_unknown,
    worker_messages,
)

log = logging.getLogger(__name__)
HELLO_SECONDS = 20.0
SEND_SECONDS = 30.0
CLOSE_SECONDS = 5.0
AWAY_SECONDS = 0.5
"""A timer that is so late was not late because of the agent."""
ABSENT_SECONDS = 10.0
"""How long a worker may be away before people see it as offline."""


class Spoken(Frozen):
    """What every hello has in common."""

    type: Literal["hello"]
    protocol: int


def mount(app: Quart, hub: Hub) -> None:
    """Serve the agents' sockets, and put the broker where other rooms find it."""
    app.asgi_websocket_class = BoundedSocket
    broker = Broker(hub.context.bus)
    hub.parts["broker"] = broker
    hub.parts["progress"] = ProgressBook(hub.context)
    hub.parts["fleet"] = Fleet(hub.context, broker)
    hub.parts["members"] = members = Members(hub.context, broker, hub.spawn)
    hub.parts["relay"] = relay = Relay(hub.context, broker, members)
    members.on_gone = relay.process_gone
    router_of(hub)
    sockets = WorkerSockets(hub, broker)

    @app.websocket("/ws/worker")
    async def worker_socket() -> None:
        await sockets.serve(websocket._get_current_object())  # type: ignore[attr-defined]


class WorkerSockets:
    def __init__(self, hub: Hub, broker: Broker) -> None:
        self.hub, self.context, self.broker = hub, hub.context, broker
        self.fleet: Fleet = hub.parts["fleet"]

    async def serve(self, socket: Websocket) -> None:
        """One agent's socket, from the handshake to its end."""
        asking.set(Asking(secrets.token_hex(8), socket.remote_addr))
        await socket.accept()
        try:
            hello, arrival, connection_id = await self._arrive(socket)
        except Refused as error:
            log.info("agent at %s refused: %s", socket.remote_addr, error.reason)
            await _close(socket, error.code, error.reason)
            return
        connection = self.broker.add(arrival, hello, connection_id)
        log.info("worker %d (%s) is connected", connection.worker_id, connection.name)
        try:
            await socket.send(arrival.welcome.model_dump_json())
            for message in arrival.then:
                connection.outbox.put(message)
            await _first_to_end(self._receive(socket, connection), self._send(socket, connection))
        finally:
            # This runs cancelled when the agent hung up; what must follow does not.
            self.hub.spawn(self._gone(connection), f"goodbye of worker {connection.worker_id}")
        await _close(socket, *(connection.outbox.closing or (CloseCode.GOING_AWAY, "")))

    # --- handshake ----------------------------------------------------------------------------

    async def _arrive(self, socket: Websocket) -> tuple[Hello, Arrival, str]:
        credential = _credential(socket)
        await self.context.database.read(enrollment.check, credential)
        hello = await _hello(socket)
        if credential.startswith("wkr_"):
            await self._make_room(credential, hello)
        connection_id = self.broker.next_id()
        writing = self.hub.spawn(
            self.context.database.write(
                presence.arrive, self.context, credential, hello, connection_id
            ),
            "arrival of a worker",
        )
        try:
            return hello, await asyncio.shield(writing), connection_id
        except asyncio.CancelledError:
            # The agent hung up meanwhile; what was written about its connection is not so.
            self.hub.spawn(self._never_mind(writing, connection_id), "undo of an arrival")
            raise

    async def _never_mind(self, writing: asyncio.Task[Arrival], connection_id: str) -> None:
        await asyncio.wait({writing})
        await self.context.database.write(presence.leave, self.context, connection_id)

    async def _make_room(self, credential: str, hello: Hello) -> None:
        """Drop the old socket of an agent that comes back; refuse a second agent with its key."""
        worker = await self.context.database.read(enrollment.find_worker, credential)
        old = self.broker.connection(worker.id)
        if old is None:
            return
        heartbeat = self.context.settings.number("leases.heartbeat_seconds")
        same = hello.instance is not None and hello.instance == old.hello.instance
        if not same and old.silent_for() < 1.5 * heartbeat:
            raise Refused(
                CloseCode.ALREADY_CONNECTED,
                f"{worker.name} is connected already, from another agent with the same key.",
            )
        self.broker.replace(worker.id)
        router_of(self.hub).worker_gone(worker.id)

    # --- loops --------------------------------------------------------------------------------

    async def _receive(self, socket: Websocket, connection: Connection) -> None:
        """Until the agent is silent for too long, sends nonsense, or something breaks."""
        desk = Desk(self.hub, connection)
        limit = self.context.settings.number("leases.offline_seconds")
        try:
            while connection.outbox.closing is None:
                frame = await _frame(socket, limit)
                connection.heard_at = time.monotonic()
                message = _understood(frame)
                if message is not None:
                    await desk.take(message)
        except TimeoutError:
            connection.outbox.close(CloseCode.SILENT, f"Nothing was heard for {limit:.0f} s.")
        except ValidationError as error:
            log.warning("worker %s sent nonsense: %s", connection.name, error)
            connection.outbox.close(CloseCode.BAD_MESSAGE, _nonsense(error))
        except Exception:
            log.exception("a message of worker %s could not be applied", connection.name)
            connection.outbox.close(CloseCode.SERVICE_RESTART, "The hub could not apply it.")

    async def _send(self, socket: Websocket, connection: Connection) -> None:
        """Until the socket is to be closed; what waits is sent first."""
        outbox = connection.outbox
        while True:
            for message in await outbox.take():
                await _pass_on(socket, message)
            if outbox.closing is not None:
                return

    async def _gone(self, connection: Connection) -> None:
        if not self.broker.remove(connection):
            return
        worker_id = connection.worker_id
        self.fleet.forget(worker_id)
        router_of(self.hub).worker_gone(worker_id)
        log.info("worker %d (%s) is gone", worker_id, connection.name)
        await self.context.database.write(presence.leave, self.context, connection.id)
        await asyncio.sleep(min(ABSENT_SECONDS, 2 * self.fleet.every))
        if self.broker.connection(worker_id) is None:
            await self.context.database.write(presence.absent, self.context, worker_id)


async def _frame(socket: Websocket, limit: float) -> str | bytes:
    """The next frame. Raises TimeoutError after `limit` seconds of silence.

    Where this process itself was away (stopped, suspended), what came meanwhile is still to be
    looked at, and the agent has done nothing wrong.
    """
    loop = asyncio.get_running_loop()
    while True:
        deadline = loop.time() + limit
        try:
            async with asyncio.timeout_at(deadline):
                return await socket.receive()
        except TimeoutError:
            if loop.time() < deadline + AWAY_SECONDS:
                raise


async def _pass_on(socket: Websocket, message: HubMessage) -> None:
    is_ack = isinstance(message, Ack)
    if is_ack:
        crash.point("ack.before")
    async with asyncio.timeout(SEND_SECONDS):
        await socket.send(message.model_dump_json())
    if is_ack:
        crash.point("ack.after")


async def _close(socket: Websocket, code: CloseCode, reason: str) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await socket.close(int(code), close_reason(reason))


def _credential(socket: Websocket) -> str:
    """The bearer token of the handshake; nothing else is looked at."""
    scheme, _, token = socket.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Refused(
            CloseCode.BAD_CREDENTIAL, "Send the agent's key as `Authorization: Bearer …`."
        )
    return str(token.strip())


def _understood(frame: str | bytes) -> WorkerMessage | None:
    """None for a message of a newer agent, which says more than this hub knows of."""
    try:
        return worker_messages.validate_json(frame)
    except ValidationError as error:
        if is_unknown(error):
            return None
        raise


async def _hello(socket: Websocket) -> Hello:
    try:
        frame = await asyncio.wait_for(socket.receive(), HELLO_SECONDS)
        _check_protocol(frame)
        message = worker_messages.validate_json(frame)
    except TimeoutError:
        raise Refused(CloseCode.BAD_MESSAGE, "No hello came within 20 s.") from None
    except ValidationError as error:
        raise Refused(CloseCode.BAD_MESSAGE, _nonsense(error)) from None
    if not isinstance(message, Hello):
        raise Refused(CloseCode.BAD_MESSAGE, "The first message must be a hello.")
    return message


def _check_protocol(frame: str | bytes) -> None:
    """Look at the number before anything else: a hello of another one may have any shape."""
    try:
        spoken = Spoken.model_validate_json(frame).protocol
    except ValidationError:
        return
    if spoken != PROTOCOL:
        is_old = spoken < PROTOCOL
        raise Refused(
            CloseCode.PROTOCOL_TOO_OLD if is_old else CloseCode.PROTOCOL_TOO_NEW,
            f"This hub speaks protocol {PROTOCOL}, the agent {spoken}: "
            f"update the {'agent' if is_old else 'hub'}.",
        )


def _nonsense(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"Not understood: {where + ': ' if where else ''}{first['msg']}"


async def _first_to_end(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all until the last one (the sender) ends, or another one ended and it was told so."""
    receiving, sending = (asyncio.ensure_future(c) for c in coroutines)
    try:
        await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
        if receiving.done() and not sending.done():
            # It has asked for the end; what waits before it may still go out.
            await asyncio.wait({sending}, timeout=5)
    finally:
        for task in (receiving, sending):
            task.cancel()
        await asyncio.gather(receiving, sending, return_exceptions=True)
