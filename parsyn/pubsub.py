"""Publish an event; every hub process hears it and passes it to its browsers.

Events go through one Redis channel. Within a hub process they are also handed over directly, so
that a dead Redis costs only what other processes say. What is meant for one hub process alone goes
through a channel of its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis
import redis.asyncio

from parsyn.wire.events import EventType

log = logging.getLogger(__name__)
CHANNEL = "parsyn:events"
GAP, GAP_TOPIC = "bus.gap", "bus"
"""Heard once Redis is back: what other processes said meanwhile was not."""
OWN_TOPIC = "hub"
WAITING_LIMIT = 10_000
RETRY_SECONDS = 1.0
GATHER_SECONDS = 0.005
TOGETHER = 500
Listener = Callable[[str, str, dict[str, Any]], None]


def channel_of(origin: str) -> str:
    """The Redis channel that only one hub process listens to."""
    return f"parsyn:hub:{origin}"


class Bus:
    """`publish` may be called from any thread. `listen` runs on the event loop of a hub process.

    A process that listens hands its events to a thread of its own, so that neither its event loop
    nor its database writer ever waits for Redis.
    """

    def __init__(self, redis_url: str | None) -> None:
        """Without an address (a command while no hub runs) there is nobody to tell."""
        self.redis_url = redis_url or ""
        self.origin = secrets.token_hex(8)
        self._redis = (
            redis.Redis.from_url(redis_url, socket_timeout=2, socket_connect_timeout=1)
            if redis_url
            else None
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Listener | None = None
        self._waiting: queue.Queue[tuple[str, str] | None] = queue.Queue(WAITING_LIMIT)
        self._missed = False
        self._sender: threading.Thread | None = None

    def publish(self, type: EventType | str, topic: str, data: dict[str, Any]) -> None:
        """Tell everyone. Never raises: what the event says is in the database anyway."""
        self._hand_over(str(type), topic, data)
        self._pass(CHANNEL, str(type), topic, data)

    def send(self, origin: str, type: str, data: dict[str, Any]) -> None:
        """Tell one hub process, which hears it on the topic `hub`. Never raises."""
        if origin == self.origin:
            self._hand_over(type, OWN_TOPIC, data)
        else:
            self._pass(channel_of(origin), type, OWN_TOPIC, data)

    def _hand_over(self, type: str, topic: str, data: dict[str, Any]) -> None:
        if self._loop is not None and self._listener is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._listener, type, topic, data)

    def _pass(self, channel: str, type: str, topic: str, data: dict[str, Any]) -> None:
        body = json.dumps({"type": type, "topic": topic, "data": data}, separators=(",", ":"))
        if self._sender is None:
            self._send([(channel, body)])
            return
        try:
            self._waiting.put_nowait((channel, body))
        except queue.Full:
            log.warning("Redis is too slow; an event of %s was not passed on", topic)

    def _send(self, bodies: list[tuple[str, str]]) -> None:
        if self._redis is None:
            return
        by_channel: dict[str, list[str]] = {}
        for channel, body in bodies:
            by_channel.setdefault(channel, []).append(body)
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for channel, together in by_channel.items():
                    pipeline.publish(channel, f"{self.origin}[{','.join(together)}]")
                pipeline.execute()
        except redis.RedisError as error:
            log.warning("Redis did not take %d events: %s", len(bodies), error)

    def _send_waiting(self) -> None:
        while True:
            bodies = [self._waiting.get()]
            if bodies[0] is not None:
                # A large fleet has hundreds of events a second: those of this while go together.
                time.sleep(GATHER_SECONDS)
            while len(bodies) < TOGETHER and not self._waiting.empty():
                bodies.append(self._waiting.get())
            self._send([body for body in bodies if body is not None])
            if None in bodies:
                return

    async def listen(self, listener: Listener) -> None:
        """Call `listener(type, topic, data)` for every event, for ever; reconnects by itself."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        if self._sender is None:
            self._sender = threading.Thread(target=self._send_waiting, name="bus", daemon=True)
            self._sender.start()
        while True:
            try:
                await self._receive(listener)
            except (redis.RedisError, OSError) as error:
                log.warning("events from other processes are lost for now: %s", error)
            self._missed = True
            await asyncio.sleep(RETRY_SECONDS)

    async def _receive(self, listener: Listener) -> None:
        client = redis.asyncio.Redis.from_url(self.redis_url)
        try:
            async with client.pubsub() as channel:
                await channel.subscribe(CHANNEL, channel_of(self.origin))
                if self._missed:
                    self._missed = False
                    listener(GAP, GAP_TOPIC, {})
                async for message in channel.listen():
                    if message["type"] == "message":
                        self._pass_on(message["data"], listener)
        finally:
            await client.aclose()

    def _pass_on(self, raw: bytes, listener: Listener) -> None:
        origin, events = raw[: len(self.origin)], raw[len(self.origin) :]
        if origin != self.origin.encode():
            for event in json.loads(events):
                listener(event["type"], event["topic"], event["data"])

    def close(self) -> None:
        self._loop = None
        self._listener = None
        if self._sender is not None:
            with suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._sender.join(timeout=5)
            self._sender = None
        if self._redis is not None:
            self._redis.close()
