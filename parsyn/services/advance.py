"""How far running tasks are: stored in batches, never over what a newer attempt said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from parsyn.store.bulk import update_many
from parsyn.store.jobs import Job, Task
from parsyn.wire.states import TaskStatus


@dataclass(frozen=True)
class Advance:
    """The latest progress and metric values of one attempt, up to its message `seq`."""

    task_id: int
    attempt: int
    progress: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    seq: int = 0


def store(rows: Sequence[Advance]) -> None:
    """Nothing of those whose attempt is over."""
    current = _current([row.task_id for row in rows])
    known = [(row, task) for row in rows if (task := current.get((row.task_id, row.attempt)))]
    update_many(
        [Task.applied_seq],
        [(task.id, row.seq) for row, task in known if row.seq > task.applied_seq],
    )
    update_many(
        [Job.progress], [(task.job_id, row.progress) for row, task in known if row.progress]
    )
    latest: dict[int, dict[str, float]] = {}
    for row, task in known:
        if row.metrics:
            so_far = latest.get(task.job_id, task.job.metrics_latest)
            latest[task.job_id] = {**so_far, **row.metrics}
    update_many([Job.metrics_latest], latest.items())


def _current(task_ids: list[int]) -> dict[tuple[int, int], Task]:
    """The running ones of these tasks, by (id, attempt), as far as it matters here."""
    rows = (
        Task.select(Task.id, Task.attempt, Task.applied_seq, Task.job, Job.id, Job.metrics_latest)
        .join(Job)
        .where(Task.id.in_(task_ids) & (Task.status == TaskStatus.RUNNING))
    )
    return {(row.id, row.attempt): row for row in rows}


def store_one(row: Advance) -> None:
    """Nothing where the attempt is over."""
    store([row])
