"""Agents that are not what they say: a second one with a key, and one that claims every task."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed

from parsyn.store.jobs import Task
from parsyn.wire.refs import FileRef
from parsyn.wire.tasks import Manifest
from parsyn.wire.worker import (
    Accepted,
    Checkpoint,
    Heartbeat,
    Hello,
    Metric,
    MetricPoint,
    Result,
    State,
    TaskKey,
    Ticket,
    WantTicket,
    hub_messages,
)
from tests.faults.agent_process import ADAPTER
from tests.faults.network import Connecting

if TYPE_CHECKING:
    from tests.faults.case import Case


async def impersonate(case: Case, key: str, *, instance: str, lies: bool = False) -> None:
    """Connect with `key` for as long as it lives; with `lies` claim whatever there is."""
    headers = {"Authorization": f"Bearer {key}"}
    hello = Hello(version="0", instance=instance, worker_type="prompter" if lies else "both")
    while True:
        try:
            async with Connecting(case.network, "impostor", headers) as socket:
                await socket.send(hello.model_dump_json())
                await socket.recv()
                while True:
                    await socket.send(Heartbeat().model_dump_json())
                    if lies:
                        await _lie(case, socket)
                    await asyncio.sleep(2.0)
        except (ConnectionClosed, OSError):
            await asyncio.sleep(5.0)


async def _lie(case: Case, socket: Any) -> None:
    with case.base.database.connection():
        claimed = [(task.id, task.attempt) for task in Task.select()]
    for task_id, attempt in claimed:
        for near in (attempt - 1, attempt, attempt + 1):
            for message in _lies_of(TaskKey(task_id=task_id, attempt=max(1, near))):
                await socket.send(message.model_dump_json())
    while not socket.frames.empty():
        frame = await socket.recv()
        message = hub_messages.validate_json(frame)
        if isinstance(message, Ticket):
            assert message.error, "a liar got a ticket"


def _lies_of(key: TaskKey) -> list[Any]:
    known = key.model_dump()
    digest = hashlib.sha256(b"lie").hexdigest()
    path = f"tasks/{key.task_id}/{key.attempt}/result/{ADAPTER}"
    file = FileRef(path=ADAPTER, key=path, size=3, sha256=digest)
    point = MetricPoint(step=1, at=0.0, values={"loss": -1.0})
    return [
        Accepted(**known),
        State(**known, seq=900, at=0.0, phase="training", step=1),
        Metric(**known, seq=901, points=(point,)),
        Checkpoint(**known, seq=902, at=0.0, step=1, files=(file,)),
        WantTicket(request_id="lie", op="put", path=f"result/{ADAPTER}", size=3, sha256=digest,
                   **known),
        Result(**known, seq=903, at=0.0, outcome="completed", manifest=Manifest(files=(file,))),
        Result(**known, seq=904, at=0.0, outcome="cancelled"),
    ]  # fmt: skip
