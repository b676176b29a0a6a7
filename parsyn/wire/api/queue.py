"""The queue: jobs that wait for a worker, in the order in which they are offered."""

from __future__ import annotations

from pydantic import model_validator

from parsyn.wire.api.base import In, Out
from parsyn.wire.api.training import JobOut
from parsyn.wire.states import Priority


class QueuedJob(Out):
    """`position` counts from 1 and counts the jobs of others that one may not see.

    `starts_in_seconds` and `predicted_seconds` (how long it will run) are null where they cannot
    be told. `movable` by the one who asks, among the jobs of the same `owner_name` and priority.
    """

    position: int
    job: JobOut
    owner_name: str
    starts_in_seconds: float | None
    predicted_seconds: float | None
    movable: bool


class QueueOut(Out):
    """`total` jobs that one may see and `hidden` ones of others."""

    items: list[QueuedJob]
    total: int
    hidden: int


class MoveIn(In):
    """Where to put the job: before or after another one of the queue."""

    before_id: int | None = None
    after_id: int | None = None

    @model_validator(mode="after")
    def _one_place(self) -> MoveIn:
        if (self.before_id is None) == (self.after_id is None):
            raise ValueError("Name one job: before_id or after_id.")
        return self


class QueuePatch(In):
    priority: Priority
