"""Which hub processes live, and what becomes of the connections of one that died."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping

from parsyn import __version__
from parsyn.services import presence, signals
from parsyn.services.context import Context
from parsyn.services.presence import process_of
from parsyn.store.conversations import Conversation
from parsyn.store.processes import HubProcess
from parsyn.store.workers import Worker
from parsyn.wire.worker import CloseCode

Ended = tuple[CloseCode, str]


def place_of(context: Context) -> str:
    """Where this process is bound; no two live processes can share it."""
    settings = context.settings
    return f"{socket.gethostname()} {settings.text('hub.host')}:{settings.integer('hub.port')}"


def join(context: Context) -> None:
    """A hub process starts: whatever was in its place before is dead.

    On SQLite there is only ever one, so every other is.
    """
    context.database.one_at_a_time("processes")
    place = place_of(context)
    rows = HubProcess.select(HubProcess.name)
    if not context.database.is_sqlite:
        rows = rows.where(HubProcess.place == place)
    else:
        Worker.update(connection=None).where(Worker.connection.is_null(False)).execute()
        Conversation.update(answering=None).where(Conversation.answering.is_null(False)).execute()
    bury(context, [row.name for row in rows])
    _enter(context, place)
    signals.wake(context)


def _enter(context: Context, place: str) -> None:
    HubProcess.create(name=context.bus.origin, place=place, version=__version__)


def beat(
    context: Context, connections: Mapping[int, str]
) -> tuple[dict[str, int], dict[int, Ended]]:
    """Say that this process lives. Returns the beats of all that do, by name, and which of its own
    `connections` must end, with the reason.

    One that the others took for dead (it was stopped for a while) says again who is connected.
    """
    own = HubProcess.name == context.bus.origin
    if not HubProcess.update(beat=HubProcess.beat + 1).where(own).execute():
        _enter(context, place_of(context))
        presence.still_connected(context, connections)
    beats = {row.name: row.beat for row in HubProcess.select()}
    return beats, _unwelcome(connections) if len(beats) > 1 else {}


def _unwelcome(connections: Mapping[int, str]) -> dict[int, Ended]:
    """Workers that were removed, or have gone to another process, while nothing could be said."""
    rows = Worker.select(Worker.id, Worker.name, Worker.connection, Worker.deleted_at).where(
        Worker.id.in_(list(connections))
    )
    ended: dict[int, Ended] = {}
    for row in rows:
        if row.deleted_at is not None:
            ended[row.id] = CloseCode.REVOKED, f"{row.name} was removed."
        elif row.connection and process_of(row.connection) != process_of(connections[row.id]):
            ended[row.id] = CloseCode.ALREADY_CONNECTED, "This agent has connected again."
    return ended


def bury_silent(context: Context, silent: Mapping[str, int]) -> list[int]:
    """Those whose beat has not moved since; returns the workers that were connected to them."""
    context.database.one_at_a_time("processes")
    dead = [
        name
        for name, beat in silent.items()
        if HubProcess.delete()
        .where((HubProcess.name == name) & (HubProcess.beat == beat))
        .execute()
    ]
    return bury(context, dead)


def bury(context: Context, names: Collection[str]) -> list[int]:
    """Forget processes and whatever was connected to them; returns those workers."""
    HubProcess.delete().where(HubProcess.name.in_(list(names))).execute()
    workers: list[int] = []
    for name in names:
        held = Worker.select(Worker.id, Worker.connection).where(
            Worker.connection.startswith(f"{name}:")
        )
        for worker in list(held):
            presence.leave(context, worker.connection)
            workers.append(worker.id)
        Conversation.update(answering=None).where(Conversation.answering == name).execute()
    return workers
