"""Which worker gets a task: who fits, in which order, and why the others do not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from typing import Any

from parsyn.clock import now
from parsyn.services import availability, workers
from parsyn.services.machines import Machine, Work
from parsyn.services.needs import Needs
from parsyn.services.speeds import Forecast, Forecaster
from parsyn.store.workers import Worker
from parsyn.wire.states import TaskKind, TaskStatus, WorkerStatus, WorkerType

REFUSAL_SECONDS = 60.0
SHOWN = 20
NAMED = 3
"""How many machines a waiting job's sentence speaks of."""
DOES = {
    TaskKind.TRAIN: "train",
    TaskKind.EVALUATE: "evaluate",
    TaskKind.EXPORT: "export",
    TaskKind.DOWNLOAD: "download models",
}
START_ONE = "Start one with `parsyn start` on a machine of yours (Workers → Add shows how)."


@dataclass(frozen=True)
class Wanted:
    """A task that waits, with what its job asks for. `refused_by` has times and reasons by
    worker."""

    project_id: int
    user_id: int
    kind: TaskKind
    selection: Mapping[str, Any]
    refused_by: Mapping[str, Any]
    needs: Needs

    @cached_property
    def types(self) -> tuple[WorkerType, ...]:
        return workers.allowed_types(self.kind)

    @cached_property
    def is_picky(self) -> bool:
        """Whether the job names workers or a GPU, a worker has refused it, or it needs much."""
        return bool(
            self.selection.get("mode", "auto") != "auto"
            or self.selection.get("gpu_type")
            or self.refused_by
            or self.needs.memory_bytes
            or self.needs.quantized
            or self.needs.remote_code
        )


@dataclass
class Ranked:
    """A machine that fits; `work` is what it is at."""

    machine: Machine
    forecast: Forecast | None
    work: Work | None = None

    @property
    def run_seconds(self) -> float | None:
        return self.forecast.seconds if self.forecast else None

    @property
    def wait_seconds(self) -> float | None:
        return self.work.left_seconds if self.work else 0.0

    @property
    def done_seconds(self) -> float | None:
        """Until the task would be done there."""
        run, wait = self.run_seconds, self.wait_seconds
        return None if run is None or wait is None else run + wait

    def as_out(self) -> dict[str, Any]:
        out = _entry(self.machine, _occupied(self.work) if self.work else in_words(self.machine))
        return out | {
            "busy": self.work is not None,
            "predicted_seconds": self.run_seconds,
            "wait_seconds": self.wait_seconds,
            "basis": self.forecast.basis if self.forecast else None,
        }


@dataclass
class Placement:
    """`free` fit and have nothing to do, best first; `busy` fit and work; `refused` do not fit."""

    free: deque[Ranked] = field(default_factory=deque)
    busy: list[Ranked] = field(default_factory=list)
    refused: list[tuple[Machine, str]] = field(default_factory=list)

    @cached_property
    def soonest(self) -> list[Ranked]:
        """The busy ones that would be done with it first, of those that were busy at first."""
        return nsmallest(SHOWN, self.busy, key=_done_order)

    def take_away(self, work: Mapping[int, Work]) -> None:
        """What has been given to others meanwhile is busy now, as far as anybody looks."""
        free = self.free
        while free and free[0].machine.id in work:
            self._give(free.popleft(), work)
        if any(one.machine.id in work for one in islice(free, SHOWN)):
            taken = [one for one in free if one.machine.id in work]
            self.free = deque(one for one in free if one.machine.id not in work)
            for one in taken:
                self._give(one, work)

    def _give(self, one: Ranked, work: Mapping[int, Work]) -> None:
        one.work = work[one.machine.id]
        self.busy.append(one)

    def as_record(self, needs: Needs, *, chosen: bool) -> dict[str, Any]:
        """`PlacementOut` of a job that is offered to the first of `free`, or waits."""
        first = list(islice(self.free, SHOWN))
        if not chosen or len(first) < SHOWN:
            first += nsmallest(SHOWN, self.busy, key=_done_order)
        if not chosen:
            first.sort(key=_done_order)
        ranked = [one.as_out() for one in first[:SHOWN]]
        return {
            "chosen": ranked[0] if chosen else None,
            "ranked": ranked,
            "refused": [_entry(*pair) for pair in self.refused[:SHOWN]],
            "passed_over": len(self.refused),
            "memory_bytes": needs.memory_bytes,
            "tokens": needs.tokens,
            "at": now(),
        }


def _entry(machine: Machine, reason: str) -> dict[str, Any]:
    return {"worker_id": machine.id, "name": machine.name, "reason": reason}


def place(
    wanted: Wanted,
    fleet: Iterable[tuple[Machine, str | None]],
    work: Mapping[int, Work],
    forecaster: Forecaster,
) -> Placement:
    """Sort the machines that may see the job's data.

    `fleet` has why each is offered nothing at all now, `work` says what they are at.
    """
    found = Placement()
    free = []
    for machine, held_back in fleet:
        if not may_see(machine, wanted):
            continue
        reason = held_back or unfit(machine, wanted)
        if reason:
            found.refused.append((machine, reason))
        elif machine.id in work:
            found.busy.append(Ranked(machine, forecaster.of(machine), work[machine.id]))
        else:
            free.append(Ranked(machine, forecaster.of(machine)))
    free.sort(key=_order)
    found.free = deque(free)
    return found


def _order(ranked: Ranked) -> tuple[Any, ...]:
    """Soonest done first; of equals, and where nothing can be said, the stronger one."""
    forecast = ranked.forecast
    if forecast is None:
        seconds = float("inf")
    elif forecast.seconds is None:
        seconds = 1 / forecast.tokens_per_second
    else:
        seconds = forecast.seconds
    score, has_gpu, memory = ranked.machine.profile.strength
    return seconds, -score, not has_gpu, -memory, ranked.machine.id


def _done_order(ranked: Ranked) -> tuple[Any, ...]:
    done = ranked.done_seconds
    return done is None, done or 0.0, ranked.work is not None, *_order(ranked)


def may_see(machine: Machine, wanted: Wanted) -> bool:
    """Whether it may see a job's data: its project's, its user's own, or the house's."""
    return (
        machine.project_id == wanted.project_id
        or machine.user_id == wanted.user_id
        or machine.kind == "managed"
    )


def out_of_reach(machine: Machine, at: float) -> str | None:
    """Why a machine is offered nothing at all at `at`; None when it is."""
    if machine.status == WorkerStatus.OFFLINE:
        return "It is offline."
    if not machine.connected:
        return "It has just lost its connection."
    return availability.held_back(machine, at)


def unfit(machine: Machine, wanted: Wanted) -> str | None:
    """Why a machine that takes work does not get this task, in a sentence; None when it may."""
    if machine.worker_type not in wanted.types:
        return f"Its type is {machine.worker_type}, so it does not {DOES[wanted.kind]}."
    projects = machine.limits.get("projects")
    if projects is not None and wanted.project_id not in projects:
        return "Its owner lets it work for other projects only."
    if not wanted.is_picky:
        return None
    return (
        not_selected(machine, wanted.selection)
        or _has_refused(machine, wanted.refused_by)
        or _lacks(machine, wanted.needs)
    )


def not_selected(worker: Machine | Worker, selection: Mapping[str, Any]) -> str | None:
    """Why a job with this `worker_selection` does not want this worker; None where it does."""
    mode = selection.get("mode", "auto")
    own, house = selection.get("worker_ids", []), selection.get("parsyn_worker_ids", [])
    named = {
        "auto": True,
        "specific_user_workers": worker.id in own,
        "specific_parsyn_workers": worker.id in house,
        "mixed": worker.id in own or worker.id in house,
    }[mode]
    if not named:
        return "The job names other workers."
    wanted = selection.get("gpu_type")
    if not wanted:
        return None
    gpu = hardware_of(worker).get("gpu") or ""
    if wanted.lower() not in gpu.lower():
        return f"The job wants {wanted}; this has {gpu or 'no GPU'}."
    return None


def _has_refused(machine: Machine, refused_by: Mapping[str, Any]) -> str | None:
    refusal = refused_by.get(str(machine.id)) if refused_by else None
    if refusal and now() - refusal["at"] < REFUSAL_SECONDS:
        return str(refusal["reason"])
    return None


def _lacks(machine: Machine, needs: Needs) -> str | None:
    """What the machine has not that the task cannot do without."""
    if needs.remote_code and not machine.trusted:
        return "The model brings code of its own, which it does not trust (TRUST_REMOTE_CODE)."
    hardware = machine.hardware
    if needs.quantized and hardware.get("torch") and not hardware.get("bitsandbytes"):
        return "It cannot load a model in 4 or 8 bit: bitsandbytes is missing there."
    if needs.memory_bytes is None:
        return None
    if not machine.profile.has_gpu:
        return _too_little(needs.memory_bytes, hardware.get("ram"), "memory", "it has")
    total, cap = hardware.get("vram_total"), machine.limits.get("vram_cap")
    held = availability.foreign_bytes(machine.metrics)
    free = total - held if total else None
    if cap is not None and (free is None or cap < free):
        return _too_little(needs.memory_bytes, cap, "GPU memory", "its owner allows")
    words = "other programs leave" if held else "it has"
    return _too_little(needs.memory_bytes, free, "GPU memory", words)


def _too_little(needed: int, there: int | None, what: str, words: str) -> str | None:
    if not there or needed <= there:
        return None
    return f"The job needs at least {_gib(needed)} GiB of {what}; {words} {_gib(there)} GiB."


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f}"


def _occupied(work: Work) -> str:
    doing = "is offered" if work.status == TaskStatus.OFFERED else "runs"
    return f"It {doing} another job."


def hardware_of(worker: Machine | Worker) -> Mapping[str, Any]:
    return worker.hardware or {}


def in_words(machine: Machine) -> str:
    """What it is, and its score."""
    what = machine.hardware.get("gpu") or f"CPU, {machine.hardware.get('cores') or '?'} cores"
    score = machine.profile.score
    return f"{what}, score {score:.3g}" if score else str(what)


def waiting(placement: Placement, kind: TaskKind) -> str:
    """Why a queued task does not run yet, and what to do about it."""
    does = DOES[kind]
    if placement.busy:
        count = len(placement.busy)
        return (
            f"Waiting for {placement.busy[0].machine.name}, which is busy."
            if count == 1
            else f"Waiting: all {count} workers that can {does} this are busy."
        )
    online = [pair for pair in placement.refused if pair[0].status != WorkerStatus.OFFLINE]
    if not online:
        return f"No worker is online that can {does}. {START_ONE}"
    sentences = [f"No worker that is online can {does} this."]
    sentences += [f"{machine.name}: {reason}" for machine, reason in online[:NAMED]]
    if len(online) > NAMED:
        sentences.append(f"And {len(online) - NAMED} more.")
    return " ".join(sentences)
