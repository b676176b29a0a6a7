"""An agent comes, speaks, goes: what the database knows of it, and of the tasks that it holds."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from parsyn import __version__
from parsyn.clock import now
from parsyn.services import enrollment, history, leases, signals, tasks, workers
from parsyn.services.accounts import digest
from parsyn.services.context import Context
from parsyn.store.bulk import update_many
from parsyn.store.jobs import Task
from parsyn.store.users import User
from parsyn.store.workers import Worker
from parsyn.wire.states import TaskStatus, WorkerEventKind, WorkerStatus, WorkerType
from parsyn.wire.worker import (
    Benchmark,
    Cancel,
    CloseCode,
    Drain,
    Hello,
    HubMessage,
    Limits,
    TaskKey,
    Welcome,
)

log = logging.getLogger(__name__)
BROKEN = "The connection broke before it could answer."


@dataclass(frozen=True)
class Arrival:
    """A worker that may stay: who it is, what it runs, the hub's answer to its hello, and what
    to say after that."""

    worker_id: int
    name: str
    worker_type: str
    project_id: int
    user_id: int
    kind: str
    key_hash: str
    status: str
    running: frozenset[TaskKey]
    welcome: Welcome
    then: tuple[HubMessage, ...]


def arrive(context: Context, credential: str, hello: Hello, connection: str) -> Arrival:
    """Enrol or recognise the agent and take its word on what it runs.

    Raises enrollment.Refused.
    """
    own_key = None
    if credential.startswith("enroll_"):
        worker, own_key = enrollment.enroll(context, credential, hello)
    else:
        context.database.one_at_a_time(f"arrival {digest(credential)}")
        worker = enrollment.find_worker(credential)
    _leave_other_process(context, worker, hello, connection)
    if hello.draining is not None:
        owner_says(context, worker.id, hello.draining)
        worker.draining = hello.draining
    previous = worker.status
    _describe(worker, hello, connection)
    stale, then = _reconcile(context, worker, hello.running)
    if previous == WorkerStatus.OFFLINE:
        history.note(worker.id, WorkerEventKind.CAME, f"It came, as version {hello.version[:60]}.")
        workers.moved(context, worker.id, WorkerStatus.IDLE, previous)
    else:
        workers.publish(context, worker.id)
    if worker.draining:
        then.append(Drain(on=True))
    if worker.limits:
        # Also that there is none any more: it may have been lifted while the agent was away.
        then.append(Limits(vram_cap=worker.limits.get("vram_cap")))
    signals.wake(context)
    leases_of = context.settings.number
    welcome = Welcome(
        version=__version__,
        worker_id=worker.id,
        name=worker.name,
        api_key=own_key,
        heartbeat_seconds=leases_of("leases.heartbeat_seconds"),
        metrics_seconds=min(5.0, leases_of("leases.heartbeat_seconds")),
        self_fence_seconds=leases_of("leases.offline_seconds")
        + leases_of("leases.unreachable_seconds"),
        stale=tuple(stale),
    )
    running = [task for task in tasks.of_worker(worker.id) if task.status == TaskStatus.RUNNING]
    return Arrival(
        worker_id=worker.id,
        name=worker.name,
        worker_type=worker.worker_type,
        project_id=worker.project_id,
        user_id=worker.user_id,
        kind=worker.kind,
        key_hash=worker.key_hash,
        status=workers.status_of(worker, running[0] if running else None),
        running=frozenset(TaskKey(task_id=t.id, attempt=t.attempt) for t in running),
        welcome=welcome,
        then=tuple(then),
    )


def _leave_other_process(context: Context, worker: Worker, hello: Hello, connection: str) -> None:
    """Drop the socket that another hub process holds; refuse a second agent with the same key."""
    old = worker.connection
    if old is None or process_of(old) == process_of(connection):
        return
    same = hello.instance is not None and hello.instance == worker.instance
    quiet = now() - (worker.last_seen_at or 0.0)
    if not same and quiet < 1.5 * context.settings.number("leases.heartbeat_seconds"):
        raise enrollment.Refused(
            CloseCode.ALREADY_CONNECTED,
            f"{worker.name} is connected already, from another agent with the same key.",
        )
    signals.close_socket(
        context, worker.id, CloseCode.ALREADY_CONNECTED, "This agent has connected again.", old
    )


def _describe(worker: Worker, hello: Hello, connection: str) -> None:
    # What the machine's owner set there wins; `both` is also what an agent says that was not set.
    if hello.worker_type != WorkerType.BOTH:
        worker.worker_type = hello.worker_type
    worker.status = WorkerStatus.IDLE
    Worker.update(
        worker_type=worker.worker_type,
        status=WorkerStatus.IDLE,
        connection=connection,
        device=hello.device[:60],
        hardware=hello.hardware.model_dump(),
        max_batch_size=hello.max_batch_size,
        trust_remote_code=hello.trust_remote_code,
        version=hello.version[:60],
        instance=hello.instance[:100] if hello.instance else None,
        last_seen_at=now(),
    ).where(Worker.id == worker.id).execute()


def _reconcile(
    context: Context, worker: Worker, running: Iterable[TaskKey]
) -> tuple[list[TaskKey], list[HubMessage]]:
    """Compare what the agent says it holds with what is true; (what it must drop, what to say)."""
    held = set(running)
    stale: list[TaskKey] = []
    then: list[HubMessage] = []
    for key in held:
        task = tasks.find(key, worker.id)
        if task is None or task.status not in workers.WORKING:
            stale.append(key)
        elif task.status == TaskStatus.OFFERED:
            tasks.accept(context, worker.id, key)
        elif task.cancel_requested_at is not None:
            then.append(Cancel(task_id=key.task_id, attempt=key.attempt))
    for task in tasks.of_worker(worker.id):
        known = TaskKey(task_id=task.id, attempt=task.attempt) in held
        if task.status == TaskStatus.OFFERED and not known:
            tasks.withdraw(context, task, BROKEN, blamed=False)
    leases.seen_again(context, worker.id)
    return stale, then


def owner_says(context: Context, worker_id: int, draining: bool) -> None:
    """The machine's owner has drained it there, or taken that back."""
    changed = Worker.update(draining=draining).where(
        (Worker.id == worker_id) & (Worker.draining != draining)
    )
    if changed.execute():
        workers.publish(context, worker_id)
        signals.wake(context)


def leave(context: Context, connection: str) -> None:
    """The socket is gone. The worker shows as offline once it has not come back for a while."""
    worker = Worker.get_or_none(Worker.connection == connection)
    if worker is None:
        return
    Worker.update(connection=None).where(Worker.id == worker.id).execute()
    for task in tasks.of_worker(worker.id):
        if task.status == TaskStatus.OFFERED:
            tasks.withdraw(context, task, BROKEN, blamed=False)
    signals.wake(context)


def absent(context: Context, worker_id: int) -> None:
    """Its socket has been gone for a while: people see it as offline."""
    worker = Worker.get_or_none((Worker.id == worker_id) & Worker.connection.is_null())
    if worker is not None:
        leases.set_offline(context, worker)


def touch(context: Context, heard: Mapping[int, tuple[str, float, dict[str, Any] | None]]) -> None:
    """Note when workers were heard, and their last metrics: worker → (connection, time, metrics).

    One that counted as offline although its socket lives is taken back.
    """
    returned = {
        row.id
        for row in Worker.select(Worker.id).where(
            (Worker.status == WorkerStatus.OFFLINE)
            & Worker.id.in_(list(heard))
            & Worker.deleted_at.is_null()
        )
    }
    update_many([Worker.last_seen_at], [(id, at) for id, (_, at, _) in heard.items()])
    update_many(
        [Worker.metrics],
        [(id, metrics) for id, (_, _, metrics) in heard.items() if metrics is not None],
    )
    for worker_id in returned:
        history.note(worker_id, WorkerEventKind.CAME, "It was heard again.")
        values = {"status": WorkerStatus.IDLE, "connection": heard[worker_id][0]}
        Worker.update(**values).where(Worker.id == worker_id).execute()
        workers.moved(context, worker_id, WorkerStatus.IDLE, WorkerStatus.OFFLINE)
        leases.seen_again(context, worker_id)
    back = Task.select(Task.worker).where(
        Task.worker.in_(list(heard)) & Task.unreachable_since.is_null(False)
    )
    for worker_id in {row.worker_id for row in back}:
        leases.seen_again(context, worker_id)
    if returned:
        signals.wake(context)


def unwelcome(keys: Mapping[int, str]) -> dict[int, str]:
    """Those of the connected that may not be any more, with the sentence for them.

    `keys` are the workers, each with the hash of the key that it came with.
    """
    rows = (
        Worker.select(Worker.id, Worker.name, Worker.deleted_at, Worker.key_hash, User.disabled)
        .join(User)
        .where(Worker.id.in_(list(keys)))
        .objects()
    )
    ended: dict[int, str] = {}
    for row in rows:
        if row.deleted_at is not None:
            ended[row.id] = f"{row.name} was removed."
        elif row.disabled:
            ended[row.id] = enrollment.OWNER_DISABLED
        elif row.key_hash != keys[row.id]:
            ended[row.id] = workers.KEY_REPLACED
    return ended


def benchmarked(context: Context, worker_id: int, benchmark: Benchmark) -> None:
    """Keep the agent's measurement; one that no machine can have is dropped."""
    figures = (benchmark.score, benchmark.tflops, benchmark.bandwidth_gbs, benchmark.max_batch)
    if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
        log.warning("worker %d sent a benchmark that cannot be: %s", worker_id, benchmark)
        return
    values = benchmark.model_dump(exclude={"type"})
    worker = Worker.by_id(worker_id)
    if worker is None or worker.benchmark == values:
        return
    Worker.update(benchmark=values).where(Worker.id == worker_id).execute()
    history.note(worker_id, WorkerEventKind.MEASURED, _measured(benchmark))
    workers.publish(context, worker_id)
    signals.wake(context)


def _measured(benchmark: Benchmark) -> str:
    if benchmark.fallback:
        return "It could not be measured; a low score is assumed."
    return (
        f"Score {benchmark.score:.1f}: {benchmark.tflops:.1f} TFLOPS,"
        f" {benchmark.bandwidth_gbs:.0f} GB/s, batches of up to {benchmark.max_batch}."
    )


def still_connected(context: Context, connections: Mapping[int, str]) -> None:
    """Say again who is connected to this process; one that went to another one stays there."""
    for worker_id, connection in connections.items():
        Worker.update(connection=connection).where(
            (Worker.id == worker_id) & Worker.connection.is_null()
        ).execute()
    signals.wake(context)


@dataclass(frozen=True)
class Elsewhere:
    """A worker whose socket another hub process holds."""

    process: str
    worker_id: int
    name: str
    worker_type: str
    project_id: int
    user_id: int
    kind: str
    status: str


def connected_elsewhere(own: str, processes: Collection[str]) -> list[Elsewhere]:
    """Every worker that is connected to one of the other `processes`."""
    rows = Worker.select().where(Worker.connection.is_null(False) & Worker.deleted_at.is_null())
    found = [row for row in rows if process_of(row.connection) in processes]
    work = workers.working_on([row.id for row in found])
    return [
        Elsewhere(
            process=process_of(row.connection),
            worker_id=row.id,
            name=row.name,
            worker_type=row.worker_type,
            project_id=row.project_id,
            user_id=row.user_id,
            kind=row.kind,
            status=workers.status_of(row, work.get(row.id)),
        )
        for row in found
        if process_of(row.connection) != own
    ]


def process_of(connection: str) -> str:
    """The hub process that a connection's id names."""
    return connection.rpartition(":")[0]
