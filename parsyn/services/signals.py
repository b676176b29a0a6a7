"""What services tell the hub processes beside events for browsers; all of it after commit.

Signals travel on the same bus as events, on topics that no browser can subscribe to.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from parsyn.services.context import Context
from parsyn.store.database import after_commit
from parsyn.wire.worker import CloseCode, HubMessage


class Signal(StrEnum):
    """The data of each, in brackets."""

    WAKE = "signal.wake"  # {}: a task or a worker may fit now
    SEND = "signal.send"  # a HubMessage for the worker of the topic
    CLOSE = "signal.close"  # {"code", "reason", "connection"}: drop the worker's socket
    CHAT = "signal.chat"  # {"asker", "worker_id", "message"}: for a worker of that hub process
    CHAT_SAID = "signal.chat_said"  # {"worker_id", "message"}: what the worker answered
    STOP_ANSWER = "signal.stop_answer"  # {"conversation_id"}: stop the answer, wherever it is


SCHEDULER = "scheduler"
ANSWERS = "answers"


def worker_topic(worker_id: int) -> str:
    return f"worker:{worker_id}"


def wake(context: Context) -> None:
    """Let the dispatchers look for tasks that can be offered."""
    _after_commit(context, Signal.WAKE, SCHEDULER, {})


def tell(context: Context, worker_id: int, message: HubMessage) -> None:
    """Send to a worker, whichever hub process holds its socket; lost when none does."""
    _after_commit(context, Signal.SEND, worker_topic(worker_id), message.model_dump(mode="json"))


def close_socket(
    context: Context,
    worker_id: int,
    code: CloseCode,
    reason: str,
    connection: str | None = None,
) -> None:
    """Drop a worker's socket; with `connection` only that one, not what has taken its place."""
    data = {"code": int(code), "reason": reason, "connection": connection}
    _after_commit(context, Signal.CLOSE, worker_topic(worker_id), data)


def _after_commit(context: Context, signal: Signal, topic: str, data: dict[str, Any]) -> None:
    after_commit(lambda: context.bus.publish(signal, topic, data))
