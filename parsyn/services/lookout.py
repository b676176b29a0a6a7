"""One look at the whole fleet, for all that waits at that moment: each question is asked once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from parsyn.services import machines, placement, speeds
from parsyn.services.machines import Machine, Work
from parsyn.services.needs import Needs
from parsyn.services.placement import SHOWN, Placement, Ranked, Wanted
from parsyn.services.speeds import Forecaster
from parsyn.store.base import database
from parsyn.wire.states import TaskKind

PATIENCE = 4.0
"""A busy machine is waited for where the task would be done there so many times sooner."""
LONG_SECONDS = 600.0
"""What takes less than that starts at once, wherever."""

_QUEUED = """
SELECT t.id, t.attempt, t.kind, t.refused_by, t.needs, j.id, j.name, j.user_id, j.project_id,
       j.request, j.waiting
FROM tasks t JOIN jobs j ON j.id = t.job_id WHERE t.id IN
"""


@dataclass(frozen=True, slots=True)
class Queued:
    """A task that waits. `likeness` is equal for tasks that every machine is equally good for."""

    task_id: int
    attempt: int
    job_id: int
    name: str
    waiting: str | None
    wanted: Wanted
    likeness: tuple[Any, ...]


def queued(ids: Iterable[int]) -> list[Queued]:
    """The tasks with these ids, in any order."""
    listed = ", ".join(str(int(id)) for id in ids)
    if not listed:
        return []
    return [_queued(*row) for row in database.execute_sql(f"{_QUEUED} ({listed})").fetchall()]


def _queued(
    task_id: int, attempt: int, kind: str, refused_by: str, needs: str, job_id: int, name: str,
    user_id: int, project_id: int, request: str, waiting: str | None,
) -> Queued:  # fmt: skip
    wanted = Wanted(
        project_id, user_id, TaskKind(kind), _selection(request), _parsed(refused_by),
        _needs(needs),
    )  # fmt: skip
    likeness = (project_id, user_id, kind, refused_by, needs, str(wanted.selection))
    return Queued(task_id, attempt, job_id, name, waiting, wanted, likeness)


@lru_cache(maxsize=4096)
def _selection(request: str) -> Mapping[str, Any]:
    return json.loads(request).get("worker_selection") or {}


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Mapping[str, Any]:
    return json.loads(text) or {}


@lru_cache(maxsize=4096)
def _needs(text: str) -> Needs:
    return Needs.from_dict(json.loads(text) or {})


class Lookout:
    """The fleet at `at`. What is given away in the meantime is told to it by `take`."""

    def __init__(self, at: float) -> None:
        self.fleet = machines.fleet()
        self.work = machines.at_work()
        self._reach = [(one, placement.out_of_reach(one, at)) for one in self.fleet]
        self._free = {one.id for one, why in self._reach if why is None} - self.work.keys()
        self._placed: dict[tuple[Any, ...], Placement] = {}
        self._forecasters: dict[Needs, Forecaster] = {}
        self._promised: dict[int, float] = defaultdict(float)
        self._held: dict[int, str] = {}

    @property
    def any_free(self) -> bool:
        return bool(self._free)

    def take(self, machine: Machine, work: Work) -> None:
        """The machine has something to do now."""
        self.work[machine.id] = work
        self._free.discard(machine.id)

    def place(self, row: Queued) -> Placement:
        """Who fits, now."""
        found = self._placed.get(row.likeness)
        if found is None:
            forecaster = self._forecaster(row.wanted.needs)
            found = placement.place(row.wanted, self._reach, self.work, forecaster)
            self._placed[row.likeness] = found
        found.take_away(self.work)
        return found

    def _forecaster(self, needs: Needs) -> Forecaster:
        if needs not in self._forecasters:
            self._forecasters[needs] = speeds.forecaster(needs, self.fleet)
        return self._forecasters[needs]

    def best_for(self, row: Queued) -> Ranked | None:
        """The free machine that should have it; None where there is none, or a busy one is worth
        waiting for. To be asked in the order of the queue: who waits for a machine keeps it from
        those behind."""
        if row.task_id in self._held:
            return None
        found = self.place(row)
        soonest = self._soonest(found)
        if not found.free:
            self._promise(soonest)
            return None
        best = found.free[0]
        if soonest is None or not self._worth_waiting_for(soonest, best):
            return best
        self._promise(soonest)
        self._held[row.task_id] = (
            f"Waiting for {soonest.machine.name}, which is busy: on {best.machine.name} it would"
            f" be done more than {PATIENCE:.0f} times as late."
        )
        return None

    def _soonest(self, found: Placement) -> Ranked | None:
        """The busy machine that would be done with it first, after what it has been promised."""
        return min(found.soonest, key=self._done, default=None)

    def _done(self, one: Ranked) -> float:
        done = one.done_seconds
        return float("inf") if done is None else done + self._promised[one.machine.id]

    def _promise(self, one: Ranked | None) -> None:
        if one is not None:
            self._promised[one.machine.id] += one.run_seconds or 0.0

    def _worth_waiting_for(self, busy: Ranked, free: Ranked) -> bool:
        here = free.run_seconds
        sure = all(one.forecast is not None and one.forecast.sure for one in (busy, free))
        if here is None or here < LONG_SECONDS or not sure:
            return False
        return self._done(busy) < here / PATIENCE

    def why(self, row: Queued) -> str:
        """Why it does not run yet, where `best_for` had nothing."""
        waits = self._held.get(row.task_id)
        return waits or placement.waiting(self.place(row), row.wanted.kind)

    def mark(self, row: Queued) -> Any:
        """Changes when something about who fits has changed; times are not looked at."""
        found = self.place(row)
        ranked = [(one.machine.id, one.work is None) for one in (*found.free, *found.busy)[:SHOWN]]
        refused = [(machine.id, reason) for machine, reason in found.refused[:SHOWN]]
        return self.why(row), ranked, refused, len(found.refused)
