"""Which worker gets a task: who fits, in which order, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from parsyn.clock import now
from parsyn.services import workers
from parsyn.store.jobs import Job, Task
from parsyn.store.workers import Worker
from parsyn.wire.states import TaskKind, TaskStatus, WorkerStatus

REFUSAL_SECONDS = 60.0
SHOWN = 20
DOES = {
    TaskKind.TRAIN: "train",
    TaskKind.EVALUATE: "evaluate",
    TaskKind.EXPORT: "export",
    TaskKind.DOWNLOAD: "download models",
}
START_ONE = "Start one with `parsyn start` on a machine of yours (Workers → Add shows how)."


@dataclass
class Placement:
    """`free` fit and have nothing to do, best first; `busy` fit and work; `refused` do not fit."""

    free: list[Worker] = field(default_factory=list)
    busy: list[tuple[Worker, str]] = field(default_factory=list)
    refused: list[tuple[Worker, str]] = field(default_factory=list)

    def as_record(self) -> dict[str, Any]:
        """`PlacementOut` for a job that is offered to the first of `free`."""
        ranked = [_entry(worker, strength_in_words(worker)) for worker in self.free[:SHOWN]]
        passed = [_entry(*pair) for pair in (*self.busy, *self.refused)][:SHOWN]
        return {"chosen": ranked[0] if ranked else None, "ranked": ranked, "refused": passed}


def _entry(worker: Worker, reason: str) -> dict[str, Any]:
    return {"worker_id": worker.id, "name": worker.name, "reason": reason}


def place(job: Job, task: Task, fleet: Iterable[Worker], work: Mapping[int, Task]) -> Placement:
    """Sort the workers that may see the job's data. `work` says what each of them does."""
    found = Placement()
    for worker in fleet:
        if not workers.may_run(worker, job):
            continue
        reason = unfit(worker, job, task)
        if reason:
            found.refused.append((worker, reason))
        elif worker.id in work:
            found.busy.append((worker, _occupied(work[worker.id])))
        else:
            found.free.append(worker)
    found.free.sort(key=strength, reverse=True)
    return found


def unfit(worker: Worker, job: Job, task: Task) -> str | None:
    """Why this worker does not get this task, in a sentence; None when it may."""
    if worker.status == WorkerStatus.OFFLINE:
        return "It is offline."
    if worker.connection is None:
        return "It has just lost its connection."
    if worker.draining:
        return "It is draining."
    if worker.paused:
        return "It is paused."
    if worker.worker_type not in workers.allowed_types(task.kind):
        return f"Its type is {worker.worker_type}, so it does not {DOES[TaskKind(task.kind)]}."
    selection = job.request.get("worker_selection") or {}
    return not_selected(worker, selection) or _has_refused(worker, task)


def not_selected(worker: Worker, selection: Mapping[str, Any]) -> str | None:
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
    gpu = hardware_of(worker).get("gpu") or ""
    if wanted and wanted.lower() not in gpu.lower():
        return f"The job wants a {wanted}; this has {gpu or 'no GPU'}."
    return None


def _has_refused(worker: Worker, task: Task) -> str | None:
    refusal = task.refused_by.get(str(worker.id))
    if refusal and now() - refusal["at"] < REFUSAL_SECONDS:
        return str(refusal["reason"])
    return None


def _occupied(task: Task) -> str:
    doing = "is offered" if task.status == TaskStatus.OFFERED else "runs"
    return f"It {doing} another job."


def hardware_of(worker: Worker) -> dict[str, Any]:
    return worker.hardware or {}


def score_of(worker: Worker) -> float:
    measured: dict[str, Any] = worker.benchmark or {}
    return float(measured.get("score", 0.0))


def strength(worker: Worker) -> tuple[float, bool, int, int]:
    """What a larger value of makes a better worker: score, GPU, memory; then the older one."""
    hardware = hardware_of(worker)
    score = score_of(worker)
    memory = hardware.get("vram_total") or hardware.get("ram") or 0
    return score, bool(hardware.get("gpu")), memory, -worker.id


def strength_in_words(worker: Worker) -> str:
    hardware = hardware_of(worker)
    what = hardware.get("gpu") or f"CPU, {hardware.get('cores') or '?'} cores"
    score = score_of(worker)
    return f"{what}, score {score:.0f}" if score else str(what)


def waiting(placement: Placement, task: Task) -> str:
    """Why a queued task does not run yet, and what to do about it."""
    does = DOES[TaskKind(task.kind)]
    if placement.busy:
        count = len(placement.busy)
        return (
            f"Waiting for {placement.busy[0][0].name}, which is busy."
            if count == 1
            else f"Waiting: all {count} workers that can {does} are busy."
        )
    online = [pair for pair in placement.refused if pair[0].status != WorkerStatus.OFFLINE]
    if not online:
        return f"No worker is online that can {does}. {START_ONE}"
    named = "; ".join(f"{worker.name}: {reason}" for worker, reason in online[:3])
    more = f" And {len(online) - 3} more." if len(online) > 3 else ""
    return f"No worker that is online can {does} this. {named}{more}"
