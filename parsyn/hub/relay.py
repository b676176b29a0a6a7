"""Chats between hub processes: the question comes in at one, the worker's socket is at another.

The asker hands the chat to the process that holds the socket, which hands back every token. Each
forgets what the other was doing when it dies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.broker import Broker, Connection
from parsyn.hub.members import Members
from parsyn.services import presence
from parsyn.services.context import Context
from parsyn.services.presence import Elsewhere
from parsyn.services.signals import Signal
from parsyn.wire.refs import ModelRef
from parsyn.wire.states import FailureReason
from parsyn.wire.tasks import Failure
from parsyn.wire.worker import Chat, ChatCancel, ChatDone, HubMessage, Token, hub_messages

log = logging.getLogger(__name__)
said: TypeAdapter[Token | ChatDone] = TypeAdapter(Token | ChatDone)
Deliver = Callable[[int, "Token | ChatDone"], None]
WENT_AWAY = "The worker went away in the middle of the answer; ask again."
BROKE = "A part of the answer was lost between the hub's processes; ask again."


@dataclass
class Asked:
    """A chat of this process at a worker of another one. `heard` is the last token's number."""

    process: str
    worker_id: int
    heard: int = 0


@dataclass(frozen=True)
class Held:
    """A chat of another process at a worker of this one."""

    asker: str
    worker_id: int
    model: ModelRef


class Relay:
    """Lives on the event loop: the workers of all hub processes, and a way to speak to each."""

    def __init__(self, context: Context, broker: Broker, members: Members) -> None:
        self._context, self._broker, self._members = context, broker, members
        self._elsewhere: dict[int, Elsewhere] = {}
        self._asked: dict[str, Asked] = {}
        self._held: dict[str, Held] = {}
        self.deliver: Deliver = lambda worker_id, message: None

    # --- as the process that is asked by people -----------------------------------------------

    async def refresh(self) -> None:
        """Learn which workers the other processes hold."""
        rows: list[Elsewhere] = []
        if self._members.others:
            rows = await self._context.database.read(
                presence.connected_elsewhere, self._context.bus.origin, self._members.others
            )
        self._elsewhere = {row.worker_id: row for row in rows}

    def connections(self) -> list[Connection | Elsewhere]:
        here = self._broker.connections()
        known = {connection.worker_id for connection in here}
        return [*here, *(row for row in self._elsewhere.values() if row.worker_id not in known)]

    async def send(self, worker_id: int, message: HubMessage) -> None:
        """To the worker's socket, wherever it is. Raises ParsynError `no_worker` without one."""
        chat_id = getattr(message, "chat_id", "")
        asked = self._asked.get(chat_id)
        if asked is not None:
            self._hand_on(asked.process, worker_id, message)
        elif self._broker.connection(worker_id) is not None:
            await self._broker.send(worker_id, message)
        elif worker_id in self._elsewhere:
            process = self._elsewhere[worker_id].process
            if isinstance(message, Chat):
                self._asked[chat_id] = Asked(process, worker_id)
            self._hand_on(process, worker_id, message)
        else:
            raise ParsynError(ErrorCode.NO_WORKER, "The worker is not connected (any more).")

    def _hand_on(self, process: str, worker_id: int, message: HubMessage) -> None:
        data = {
            "asker": self._context.bus.origin,
            "worker_id": worker_id,
            "message": message.model_dump(mode="json"),
        }
        self._context.bus.send(process, Signal.CHAT, data)

    def forget(self, chat_id: str) -> None:
        """The answer has ended."""
        self._asked.pop(chat_id, None)

    def _hear(self, worker_id: int, message: Token | ChatDone) -> None:
        asked = self._asked.get(message.chat_id)
        if asked is None:
            return
        if isinstance(message, Token):
            if message.n > asked.heard + 1:
                self._hand_on(asked.process, worker_id, ChatCancel(chat_id=message.chat_id))
                message = _broken(message.chat_id, BROKE)
            else:
                asked.heard = max(asked.heard, message.n)
        self.deliver(worker_id, message)

    # --- as the process that holds the socket -------------------------------------------------

    def _take_on(self, asker: str, worker_id: int, message: HubMessage) -> None:
        connection = self._broker.connection(worker_id)
        if isinstance(message, Chat):
            if connection is None:
                self._hand_back(asker, worker_id, _broken(message.chat_id, WENT_AWAY))
                return
            self._held[message.chat_id] = Held(asker, worker_id, message.model)
        if connection is not None:
            connection.outbox.put(message)

    def pass_on(self, worker_id: int, message: Token | ChatDone) -> None:
        """What a worker of this process said in a chat of another one."""
        held = self._held.get(message.chat_id)
        if held is None or held.worker_id != worker_id:
            return
        if isinstance(message, ChatDone):
            del self._held[message.chat_id]
        self._hand_back(held.asker, worker_id, message)

    def _hand_back(self, asker: str, worker_id: int, message: Token | ChatDone) -> None:
        data = {"worker_id": worker_id, "message": message.model_dump(mode="json")}
        self._context.bus.send(asker, Signal.CHAT_SAID, data)

    def model_of(self, worker_id: int, chat_id: str) -> ModelRef | None:
        """The model that a worker answers with in a chat of another process."""
        held = self._held.get(chat_id)
        return held.model if held is not None and held.worker_id == worker_id else None

    def worker_gone(self, worker_id: int) -> None:
        """Its socket here closed."""
        for chat_id, held in list(self._held.items()):
            if held.worker_id == worker_id:
                self.pass_on(worker_id, _broken(chat_id, WENT_AWAY))

    # --- both ---------------------------------------------------------------------------------

    def heed(self, signal: str, data: dict[str, Any]) -> None:
        """What another process says to this one."""
        if signal == Signal.CHAT:
            message = hub_messages.validate_python(data["message"])
            self._take_on(data["asker"], data["worker_id"], message)
        elif signal == Signal.CHAT_SAID:
            self._hear(data["worker_id"], said.validate_python(data["message"]))

    def process_gone(self, name: str) -> None:
        """Another hub process died: nobody there reads, and nothing more comes from there."""
        for chat_id, held in list(self._held.items()):
            if held.asker == name:
                del self._held[chat_id]
                connection = self._broker.connection(held.worker_id)
                if connection is not None:
                    connection.outbox.put(ChatCancel(chat_id=chat_id))
        self._end(lambda asked: asked.process == name, WENT_AWAY)

    def lost_touch(self) -> None:
        """What was said between the processes may be lost."""
        self._end(lambda asked: True, BROKE)

    def _end(self, which: Callable[[Asked], bool], why: str) -> None:
        for chat_id, asked in list(self._asked.items()):
            if which(asked):
                self._hand_on(asked.process, asked.worker_id, ChatCancel(chat_id=chat_id))
                self.deliver(asked.worker_id, _broken(chat_id, why))


def _broken(chat_id: str, why: str) -> ChatDone:
    failure = Failure(reason=FailureReason.WORKER_LOST, message=why)
    return ChatDone(chat_id=chat_id, finish_reason="error", failure=failure)
