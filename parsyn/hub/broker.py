"""The agents' sockets of this hub process: who is connected, and a way to speak to them."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from parsyn.errors import ErrorCode, ParsynError
from parsyn.pubsub import Bus
from parsyn.services.presence import Arrival
from parsyn.services.reports import Holding
from parsyn.services.signals import Signal, worker_topic
from parsyn.wire.states import WorkerStatus
from parsyn.wire.worker import Ack, Cancel, CloseCode, Hello, HubMessage, hub_messages

log = logging.getLogger(__name__)
WAITING_LIMIT = 2000
REASON_BYTES = 123
"""What a close frame has room for."""


class Outbox:
    """What one socket shall send, in order; acknowledgements are gathered by attempt.

    Only for the event loop's thread.
    """

    def __init__(self) -> None:
        self._messages: deque[HubMessage] = deque()
        self._acks: dict[tuple[int, int], list[int]] = {}
        self._ready = asyncio.Event()
        self.closing: tuple[CloseCode, str] | None = None

    def put(self, message: HubMessage) -> None:
        if len(self._messages) >= WAITING_LIMIT:
            self.close(CloseCode.SILENT, "The agent does not read what the hub sends.")
            return
        self._messages.append(message)
        self._ready.set()

    def ack(self, task_id: int, attempt: int, seq: int) -> None:
        self._acks.setdefault((task_id, attempt), []).append(seq)
        self._ready.set()

    def close(self, code: CloseCode, reason: str) -> None:
        """The last thing to be sent."""
        if self.closing is None:
            self.closing = (code, reason)
        self._ready.set()

    async def take(self) -> list[HubMessage]:
        """What waits, at least one message unless the socket is to be closed."""
        await self._ready.wait()
        self._ready.clear()
        batch: list[HubMessage] = [
            Ack(task_id=task_id, attempt=attempt, seqs=tuple(seqs))
            for (task_id, attempt), seqs in self._acks.items()
        ]
        self._acks.clear()
        batch += self._messages
        self._messages.clear()
        return batch


@dataclass
class Connection:
    """One agent's live socket. `heard_at` is on the monotonic clock.

    `holdings` are the attempts it was found to own, `running` those of them that it works on;
    `spoke` are those it reported of since its last heartbeat, `missing` those it did not name then.
    """

    id: str
    worker_id: int
    name: str
    worker_type: str
    project_id: int
    user_id: int
    kind: str
    key_hash: str
    hello: Hello
    outbox: Outbox = field(default_factory=Outbox)
    status: str = WorkerStatus.IDLE
    heard_at: float = field(default_factory=time.monotonic)
    holdings: dict[tuple[int, int], Holding] = field(default_factory=dict)
    running: set[tuple[int, int]] = field(default_factory=set)
    spoke: set[tuple[int, int]] = field(default_factory=set)
    missing: set[tuple[int, int]] = field(default_factory=set)

    def drop(self, task_id: int, attempt: int) -> None:
        """The attempt is over for this worker."""
        for known in (self.running, self.spoke, self.missing):
            known.discard((task_id, attempt))

    def silent_for(self) -> float:
        return time.monotonic() - self.heard_at


class Broker:
    """Lives on the event loop. `connections` and `send` are what other rooms use."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._by_worker: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()

    def connections(self) -> list[Connection]:
        return list(self._by_worker.values())

    def connection(self, worker_id: int) -> Connection | None:
        return self._by_worker.get(worker_id)

    def next_id(self) -> str:
        """What the database knows the next connection by."""
        return f"{self._bus.origin}:{next(self._numbers)}"

    def add(self, arrival: Arrival, hello: Hello, connection_id: str) -> Connection:
        connection = Connection(
            id=connection_id,
            worker_id=arrival.worker_id,
            name=arrival.name,
            worker_type=arrival.worker_type,
            project_id=arrival.project_id,
            user_id=arrival.user_id,
            kind=arrival.kind,
            key_hash=arrival.key_hash,
            hello=hello,
            status=arrival.status,
        )
        self.replace(arrival.worker_id)
        self._by_worker[arrival.worker_id] = connection
        return connection

    def replace(self, worker_id: int) -> None:
        """Drop the socket that a newer one of the same agent takes the place of."""
        old = self._by_worker.pop(worker_id, None)
        if old is not None:
            old.outbox.close(CloseCode.ALREADY_CONNECTED, "This agent has connected again.")

    def remove(self, connection: Connection) -> bool:
        """False where another connection has taken its place."""
        if self._by_worker.get(connection.worker_id) is not connection:
            return False
        del self._by_worker[connection.worker_id]
        self._changed.set()
        return True

    async def emptied(self) -> None:
        """Return once nobody is connected."""
        while self._by_worker:
            self._changed.clear()
            await self._changed.wait()

    async def send(self, worker_id: int, message: HubMessage) -> None:
        """Send to a worker of this process. Raises ParsynError `no_worker` without a socket."""
        connection = self._by_worker.get(worker_id)
        if connection is None:
            raise ParsynError(ErrorCode.NO_WORKER, "The worker is not connected (any more).")
        connection.outbox.put(message)

    def close_all(self, code: CloseCode, reason: str) -> None:
        for connection in self.connections():
            connection.outbox.close(code, reason)

    # --- what other processes and transactions say --------------------------------------------

    def heed(self, signal: str, topic: str, data: dict[str, Any]) -> None:
        """Carry out a signal to one worker, if its socket is here."""
        worker_id = int(topic.removeprefix(worker_topic(0)[:-1]))
        connection = self._by_worker.get(worker_id)
        if connection is None:
            return
        if signal == Signal.SEND:
            message = hub_messages.validate_python(data)
            if isinstance(message, Cancel) and message.reason == "stale":
                connection.holdings.pop((message.task_id, message.attempt), None)
                connection.drop(message.task_id, message.attempt)
            connection.outbox.put(message)
        elif signal == Signal.CLOSE and data.get("connection") in (None, connection.id):
            connection.outbox.close(CloseCode(data["code"]), str(data["reason"]))

    def notice(self, worker: dict[str, Any]) -> None:
        """Keep what a `worker.state` event says of a connected worker."""
        connection = self._by_worker.get(worker["id"])
        if connection is not None and "status" in worker:
            connection.name = worker["name"]
            connection.status = worker["status"]
            connection.worker_type = worker["worker_type"]


def close_reason(text: str) -> str:
    """A sentence cut to what a close frame can carry."""
    raw = text.encode()
    if len(raw) <= REASON_BYTES:
        return text
    return raw[: REASON_BYTES - 3].decode(errors="ignore") + "…"
