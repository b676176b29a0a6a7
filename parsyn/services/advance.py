"""How far running tasks are: stored in batches, never over what a newer attempt said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from parsyn.services import tasks
from parsyn.store.jobs import Job, Task


@dataclass(frozen=True)
class Advance:
    """The latest progress and metric values of one attempt, up to its message `seq`."""

    task_id: int
    attempt: int
    progress: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    seq: int = 0


def store(rows: Sequence[Advance]) -> None:
    for row in rows:
        store_one(row)


def store_one(row: Advance) -> None:
    """Nothing where the attempt is over."""
    task = Task.get_or_none(tasks.is_current(row.task_id, row.attempt))
    if task is None:
        return
    if row.seq > task.applied_seq:
        Task.update(applied_seq=row.seq).where(Task.id == task.id).execute()
    values: dict[str, Any] = {}
    if row.progress:
        values["progress"] = row.progress
    if row.metrics:
        values["metrics_latest"] = {**task.job.metrics_latest, **row.metrics}
    if values:
        Job.update(**values).where(Job.id == task.job_id).execute()
