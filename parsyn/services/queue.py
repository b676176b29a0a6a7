"""The queue: in which order waiting jobs are offered, and who may change it.

First by priority. Within one, fairly between users: next comes the job of whoever has the fewest
running or already before them. Each user's own jobs keep the order that they were given.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import peewee

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.services import job_shapes, jobs, signals
from parsyn.services.context import Context
from parsyn.services.principal import Principal, require_role
from parsyn.store.jobs import Job, Task
from parsyn.store.projects import Project, visible
from parsyn.store.users import User
from parsyn.wire.api.queue import MoveIn, QueuePatch
from parsyn.wire.states import (
    LEVELS,
    JobStatus,
    Priority,
    ProjectRole,
    TaskStatus,
    priority_of,
)

WORKING = (TaskStatus.OFFERED, TaskStatus.RUNNING)
FORESEEN = 300
"""For so many jobs it is worked out when they will start."""
NARROWEST = 1e-5
"""Seconds between two positions below which the list is numbered anew."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task that can be offered. `key` orders it among those of its user and priority."""

    task_id: int
    job_id: int
    user_id: int
    priority: int
    key: float


def in_order() -> list[Waiting]:
    """Everything that waits, next first."""
    return ordered(_waiting(), _running())


def _waiting() -> list[Waiting]:
    columns = (Task.id, Task.job, Job.user, Job.priority, Job.position, Task.created_at)
    rows = Task.select(*columns).join(Job).where(Task.status == TaskStatus.QUEUED).tuples()
    return [
        Waiting(task_id, job_id, user_id, priority, created if position is None else position)
        for task_id, job_id, user_id, priority, position, created in rows
    ]


def _running() -> dict[int, int]:
    """How many tasks of each user are offered or running."""
    rows = (
        Task.select(Job.user, peewee.fn.COUNT(Task.id))
        .join(Job)
        .where(Task.status.in_(WORKING))
        .group_by(Job.user)
        .tuples()
    )
    return dict(rows)


def ordered(rows: Iterable[Waiting], running: Mapping[int, int]) -> list[Waiting]:
    """`rows` in the order in which they are offered; `running` counts by user."""
    found: list[Waiting] = []
    ahead = dict(running)
    by_priority: dict[int, dict[int, list[Waiting]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_priority[row.priority][row.user_id].append(row)
    for priority in sorted(by_priority, reverse=True):
        found += _in_turns(by_priority[priority].values(), ahead)
    return found


def _in_turns(lists: Iterable[list[Waiting]], ahead: dict[int, int]) -> Iterable[Waiting]:
    """One at a time of whoever has the fewest `ahead`, of equals the one who waits longest."""
    turns = []
    for mine in lists:
        mine.sort(key=_place, reverse=True)
        turns.append((ahead.get(mine[-1].user_id, 0), *_place(mine[-1]), mine))
    heapq.heapify(turns)
    while turns:
        count, _, _, mine = turns[0]
        row = mine.pop()
        ahead[row.user_id] = count + 1
        yield row
        if mine:
            heapq.heapreplace(turns, (count + 1, *_place(mine[-1]), mine))
        else:
            heapq.heappop(turns)


def _place(row: Waiting) -> tuple[float, int]:
    return row.key, row.task_id


# --- seeing ----------------------------------------------------------------------------------


def show(context: Context, who: Principal, limit: int, offset: int) -> dict[str, Any]:
    """`QueueOut`: the jobs that `who` may see, each with its place among all."""
    queued = Job.status == JobStatus.QUEUED
    seen = {row.id for row in Job.select(Job.id).where(queued & visible(Job, who.user_id))}
    order = in_order()
    mine = [(place, row) for place, row in enumerate(order, 1) if row.job_id in seen]
    page = mine[offset : offset + limit]
    last = page[-1][0] if page else 0
    starts = _starts([row.job_id for row in order[: min(last, FORESEEN)]])
    return {
        "items": _as_outs(who, page, starts),
        "total": len(mine),
        "hidden": len(order) - len(mine),
    }


def _starts(job_ids: Sequence[int]) -> dict[int, tuple[float | None, float | None]]:
    """(seconds until it starts, seconds that it runs) of jobs in their order, as foreseen.

    Each is given to the machine that is done with it first of those that it was last ranked for;
    the next one finds that machine taken for so long. Where one cannot be told, neither can those
    that would run after it.
    """
    rows = Job.select(Job.id, Job.placement).where(Job.id.in_(list(job_ids))).tuples()
    placements: dict[int, dict[str, Any]] = dict(rows)
    at = now()
    taken: dict[int, float | None] = {}
    found: dict[int, tuple[float | None, float | None]] = {}
    for job_id in job_ids:
        placement = placements.get(job_id) or {}
        since = at - (placement.get("at") or at)
        choices = [_choice(one, since, taken) for one in placement.get("ranked") or ()]
        start, run, worker_id = min(choices, key=_done, default=(None, None, None))
        if worker_id is not None:
            taken[worker_id] = None if start is None or run is None else start + run
        found[job_id] = (start, run)
    return found


Choice = tuple[float | None, float | None, int | None]


def _choice(one: Mapping[str, Any], since: float, taken: Mapping[int, float | None]) -> Choice:
    """(start, run, worker) of a ranking that is so many seconds old."""
    worker_id = one["worker_id"]
    run, wait = one.get("predicted_seconds"), one.get("wait_seconds")
    free = max(0.0, wait - since) if wait is not None else None
    return taken.get(worker_id, free), run, worker_id


def _done(choice: Choice) -> tuple[bool, float, float]:
    start, run, _ = choice
    return start is None, (start or 0.0) + (run or 0.0), start or 0.0


def _as_outs(
    who: Principal,
    page: Sequence[tuple[int, Waiting]],
    starts: Mapping[int, tuple[float | None, float | None]],
) -> list[dict[str, Any]]:
    ids = [row.job_id for _, row in page]
    rows = {row.id: row for row in Job.select().where(Job.id.in_(ids))}
    outs = {out["id"]: out for out in job_shapes.as_outs(rows[id] for id in ids)}
    owners = {row.user_id for row in rows.values()}
    names = {row.id: row.name for row in User.select().where(User.id.in_(list(owners)))}
    editable = visible(Job, who.user_id, ProjectRole.EDITOR)
    movable = {row.id for row in Job.select(Job.id).where(Job.id.in_(ids) & editable)}
    return [
        {
            "position": place,
            "job": outs[row.job_id],
            "owner_name": names[row.user_id],
            "starts_in_seconds": starts.get(row.job_id, (None, None))[0],
            "predicted_seconds": starts.get(row.job_id, (None, None))[1],
            "movable": row.job_id in movable,
        }
        for place, row in page
    ]


# --- changing --------------------------------------------------------------------------------


def move(context: Context, who: Principal, job_id: int, body: MoveIn) -> dict[str, Any]:
    """Put a waiting job before or after another one of its user's and priority.

    Raises 404, 403 below editor, 409 where it does not wait, 422 where that is no place for it.
    """
    job = _find(who, job_id)
    if job.status != JobStatus.QUEUED:
        raise jobs.wrong_state(job, "a waiting job")
    name = "before_id" if body.before_id is not None else "after_id"
    anchor = body.before_id if body.before_id is not None else body.after_id
    others = _neighbours(who, job, anchor, name)
    place = next(n for n, row in enumerate(others) if row.job_id == anchor)
    _insert(job, others, place + (name == "after_id"))
    signals.wake(context)
    return job_shapes.publish(context, job.id)


def _find(who: Principal, job_id: int) -> Job:
    row = Job.get_or_none((Job.id == job_id) & visible(Job, who.user_id))
    if row is None:
        raise not_found("job")
    require_role(who, row.project_id, ProjectRole.EDITOR)
    return row


def _neighbours(who: Principal, job: Job, anchor: int | None, loc: str) -> list[Waiting]:
    """The list in which a job may be moved, without itself."""
    other = Job.get_or_none((Job.id == anchor) & visible(Job, who.user_id))
    if other is None or other.status != JobStatus.QUEUED:
        raise invalid([loc], "There is no such job in the queue.")
    if other.id == job.id:
        raise invalid([loc], "A job cannot be moved to itself.")
    if other.priority != job.priority:
        raise invalid(
            [loc],
            f"{other.name} has the priority {priority_of(other.priority)}, {job.name}"
            f" {priority_of(job.priority)}; give both the same one first.",
        )
    if other.user_id != job.user_id:
        raise invalid(
            [loc],
            f"{other.name} belongs to {other.user.name}. People take turns; a job is moved among"
            " those of one person, and goes before others by its priority.",
        )
    mine = [row for row in _waiting() if (row.user_id, row.priority) == (job.user_id, job.priority)]
    return sorted((row for row in mine if row.job_id != job.id), key=_place)


def _insert(job: Job, others: Sequence[Waiting], place: int) -> None:
    before = others[place - 1].key if place else others[place].key - 2.0
    after = others[place].key if place < len(others) else max(now(), before + 2 * NARROWEST)
    if after - before > NARROWEST:
        Job.update(position=(before + after) / 2).where(Job.id == job.id).execute()
        return
    ids = [row.job_id for row in others]
    ids.insert(place, job.id)
    first = others[0].key - len(ids)
    for n, job_id in enumerate(ids):
        Job.update(position=first + n).where(Job.id == job_id).execute()


def set_priority(context: Context, who: Principal, job_id: int, body: QueuePatch) -> dict[str, Any]:
    """Raises 404, 403 where the role is too low for it, 409 where the job no longer waits."""
    job = _find(who, job_id)
    if job.status not in (JobStatus.PENDING, JobStatus.QUEUED):
        raise jobs.wrong_state(job, "a job that waits")
    require_priority(who, job.project_id, body.priority)
    level = LEVELS[body.priority]
    if job.priority != level:
        Job.update(priority=level, position=None).where(Job.id == job.id).execute()
        jobs.note(job.id, job.status, f"Its priority is {body.priority} now.")
        signals.wake(context)
    return job_shapes.publish(context, job.id)


def require_priority(who: Principal, project_id: int, priority: Priority) -> None:
    """`high` goes before other people's jobs: for admins of a shared project, and of the hub.

    Raises 403.
    """
    if priority != Priority.HIGH or who.is_admin:
        return
    if Project.get_by_id(project_id).owner_id is not None:
        raise ParsynError(
            ErrorCode.FORBIDDEN,
            "In a personal project only an admin of the hub gives the priority high, which goes"
            " before other people's jobs. Among your own, move the job up in the queue.",
        )
    require_role(who, project_id, ProjectRole.ADMIN)
