"""How the hub stands, in numbers: a few short queries, for the monitoring."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import peewee

from parsyn.clock import now
from parsyn.services.workers import status_of, working_on
from parsyn.store.jobs import Job, JobEvent, Task
from parsyn.store.outbox import Outbox
from parsyn.store.processes import HubProcess
from parsyn.store.workers import Worker
from parsyn.wire.states import JobStatus, TaskStatus, WorkerStatus


@dataclass
class Figures:
    """Counts; ages in seconds. `jobs` by (kind, status)."""

    workers: dict[str, int] = field(default_factory=dict)
    jobs: dict[tuple[str, str], int] = field(default_factory=dict)
    queued: int = 0
    oldest_wait: float = 0.0
    running: int = 0
    unreachable: int = 0
    outbox: int = 0
    oldest_effect: float = 0.0
    processes: int = 0


def figures() -> Figures:
    """Everything that the database knows of it."""
    at = now()
    unfinished = Outbox.select().where(Outbox.done_at.is_null())
    oldest_effect = unfinished.select(peewee.fn.MIN(Outbox.created_at)).scalar()
    running = Task.select().where(Task.status == TaskStatus.RUNNING)
    return Figures(
        workers=_workers(),
        jobs=_jobs(),
        queued=Task.select().where(Task.status == TaskStatus.QUEUED).count(),
        oldest_wait=_oldest_wait(at),
        running=running.count(),
        unreachable=running.where(Task.unreachable_since.is_null(False)).count(),
        outbox=unfinished.count(),
        oldest_effect=max(0.0, at - oldest_effect) if oldest_effect else 0.0,
        processes=HubProcess.select().count(),
    )


def _workers() -> dict[str, int]:
    shown = (Worker.id, Worker.status, Worker.draining, Worker.paused)
    rows = list(Worker.select(*shown).where(Worker.deleted_at.is_null()))
    work = working_on([row.id for row in rows])
    found = Counter(str(status_of(row, work.get(row.id))) for row in rows)
    return {str(status): found[str(status)] for status in WorkerStatus}


def _jobs() -> dict[tuple[str, str], int]:
    rows = Job.select(Job.kind, Job.status, peewee.fn.COUNT(Job.id)).group_by(Job.kind, Job.status)
    return {(kind, status): count for kind, status, count in rows.tuples()}


def _oldest_wait(at: float) -> float:
    """Since when the job that waits longest was put into the queue."""
    last = (
        JobEvent.select(peewee.fn.MAX(JobEvent.created_at))
        .join(Job)
        .where((Job.status == JobStatus.QUEUED) & (JobEvent.status == JobStatus.QUEUED))
        .group_by(JobEvent.job)
    )
    times = [row[0] for row in last.tuples()]
    return max(0.0, at - min(times)) if times else 0.0
