"""One socket to the hub, kept alive: hello, heartbeats, the spool's messages, and coming back."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from parsyn import __version__
from parsyn.wire.worker import (
    Ack,
    Heartbeat,
    Hello,
    HubMessage,
    Ticket,
    WantTicket,
    Welcome,
    WorkerMessage,
    hub_messages,
    is_unknown,
)
from parsyn_worker.address import HubAddress
from parsyn_worker.backoff import Backoff
from parsyn_worker.refusal import REFUSED_DELAY, Refusal, explain
from parsyn_worker.spool import Spool
from parsyn_worker.spool_thread import SpoolThread
from parsyn_worker.tickets import Tickets

log = logging.getLogger(__name__)

WELCOME_SECONDS = 20.0
CLOSE_SECONDS = 1.0
"""How long a hub that has closed may take over it: every second of this is one without a hub."""
IN_FLIGHT = 512
"""Spooled messages that may be on their way without an acknowledgement."""


def clock() -> float:
    """Seconds that go on while the machine sleeps or the process is stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Direct(connect):
    """Follows no redirect: the key goes to the address that it was given for, or nowhere."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Session:
    """Connects, and goes on connecting until it is cancelled.

    `hello` and `beat` are asked for at each connection and heartbeat. `on_welcome` is called
    first, then `on_message` with whatever the hub sends beside acknowledgements and tickets,
    and `on_down` when the connection is gone. None of them may block.
    """

    def __init__(
        self,
        hub: HubAddress,
        key: str,
        spool: SpoolThread,
        *,
        hello: Callable[[], Hello],
        beat: Callable[[], Heartbeat],
        on_open: Callable[[], None],
        on_welcome: Callable[[Welcome], None],
        on_message: Callable[[HubMessage], None],
        on_down: Callable[[Refusal], None],
        reconnect_delay: float,
        heartbeat: float,
    ) -> None:
        self.hub, self.key, self.spool = hub, key, spool
        self.hello, self._heartbeat = hello, beat
        self.on_open, self.on_welcome = on_open, on_welcome
        self.on_message, self.on_down = on_message, on_down
        self.heartbeat = heartbeat
        self.connected = asyncio.Event()
        self.tickets = Tickets(self._ask)
        self.last_answer = clock()
        self._socket: ClientConnection | None = None
        self._in_flight = 0
        self._backoff = Backoff(reconnect_delay)

    async def run(self) -> None:
        while True:
            refusal = await self._once()
            self.on_down(refusal)
            delay = self._delay(refusal)
            if refusal.hub_down:
                # It counts as answered until it is asked again: it gives nothing away meanwhile.
                self.last_answer = clock() + delay
            log.info("Next try in %.1f s.", delay)
            await asyncio.sleep(delay)

    async def send(self, message: WorkerMessage) -> bool:
        """Send what need not survive; False when there is no connection."""
        socket = self._socket
        if socket is None or not self.connected.is_set():
            return False
        try:
            await socket.send(message.model_dump_json())
        except ConnectionClosed:
            return False
        return True

    async def beat(self) -> None:
        """A heartbeat out of turn: something about this agent has changed."""
        await self.send(self._heartbeat())

    async def _ask(self, want: WantTicket) -> None:
        await self.connected.wait()
        if not await self.send(want):
            raise ConnectionError("the connection to the hub broke")

    def _delay(self, refusal: Refusal) -> float:
        if refusal.final:
            return random.uniform(0.9, 1.1) * REFUSED_DELAY
        return self._backoff.wait(clock())

    async def _once(self) -> Refusal:
        try:
            async with Direct(
                self.hub.socket,
                compression=None,
                additional_headers={"Authorization": f"Bearer {self.key}"},
                user_agent_header=f"parsyn-worker/{__version__}",
                open_timeout=20,
                close_timeout=CLOSE_SECONDS,
                max_size=16 << 20,
            ) as socket:
                self.on_open()
                await self._serve(socket)
        except (OSError, WebSocketException, EOFError) as error:
            return explain(error, self.hub.socket)
        except ValidationError:
            return Refusal(f"{self.hub.socket} does not speak this protocol.", False)
        finally:
            self._socket = None
            self.connected.clear()
            self.tickets.drop()
        return Refusal("The hub closed the connection.", False)

    async def _serve(self, socket: ClientConnection) -> None:
        await socket.send(self.hello().model_dump_json())
        welcome = hub_messages.validate_json(await asyncio.wait_for(socket.recv(), WELCOME_SECONDS))
        if not isinstance(welcome, Welcome):
            raise ConnectionError("the hub did not begin with a welcome")
        self._backoff.connected()
        self._in_flight = 0
        self.last_answer = clock()
        self.key = welcome.api_key or self.key
        self.on_welcome(welcome)
        self._socket = socket
        self.connected.set()
        beats = min(self.heartbeat, welcome.heartbeat_seconds)
        await _first_to_end(self._receive(socket), self._beat(socket, beats), self._pump(socket))

    async def _receive(self, socket: ClientConnection) -> None:
        while True:
            frame = await socket.recv()
            self.last_answer = clock()
            try:
                message = hub_messages.validate_json(frame)
            except ValidationError as error:
                if is_unknown(error):
                    log.debug("The hub is newer: a message of its was not understood.")
                    continue
                log.warning("A message of the hub was not understood: %s", error.errors()[0]["msg"])
                continue
            if isinstance(message, Ack):
                await self._acknowledged(message)
            elif isinstance(message, Ticket):
                self.tickets.answer(message)
            else:
                self.on_message(message)

    async def _acknowledged(self, ack: Ack) -> None:
        await self.spool.call(Spool.acknowledge, ack, ack.seqs)
        self._in_flight = max(0, self._in_flight - len(ack.seqs))
        self.spool.changed.set()

    async def _beat(self, socket: ClientConnection, interval: float) -> None:
        while True:
            await asyncio.sleep(interval * random.uniform(0.7, 0.9))
            await socket.send(self._heartbeat().model_dump_json())

    async def _pump(self, socket: ClientConnection) -> None:
        last = 0
        while True:
            self.spool.changed.clear()
            room = IN_FLIGHT - self._in_flight
            batch = await self.spool.call(Spool.waiting, last, room) if room > 0 else []
            for waiting in batch:
                await socket.send(waiting.body)
                self._in_flight += 1
                last = waiting.id
            if not batch:
                await self.spool.changed.wait()


async def _first_to_end(*coroutines: Any) -> None:
    """Run all until one ends or fails; that one's outcome counts, the others are cancelled."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
