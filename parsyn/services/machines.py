"""The whole fleet as placing sees it: plain values, read fast, since it is read for every offer.

A thousand workers as rows of the ORM take longer to build than to choose from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from parsyn.store.base import database
from parsyn.wire.states import TaskStatus

ASSUMED_TFLOPS = {True: 5.0, False: 0.02}
"""Of a GPU, or none, that was not measured: below any that is worth its power."""

_FOREIGN = '"vram_foreign":'
_WORKERS = """
SELECT id, name, user_id, project_id, kind, worker_type, status, connection, draining, paused,
       trust_remote_code, hardware, benchmark, limits, metrics
FROM workers WHERE deleted_at IS NULL
"""
_WORK = f"""
SELECT t.worker_id, t.id, t.status, j.id, j.name, j.progress
FROM tasks t JOIN jobs j ON j.id = t.job_id
WHERE t.status IN ('{TaskStatus.OFFERED}', '{TaskStatus.RUNNING}') AND t.worker_id IS NOT NULL
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Profile:
    """What follows from a machine's hardware and benchmark; made once for each pair of texts.

    `device` is what speeds are compared by: the GPU, or the processor with its cores. `measured`:
    its figures are not assumed. `strength` orders machines of which nothing else is known.
    """

    hardware: Mapping[str, Any]
    device: str
    has_gpu: bool
    score: float
    tflops: float
    measured: bool
    strength: tuple[float, bool, int]


@dataclass(slots=True)
class Machine:
    """A worker with what its owner and its agent say of it."""

    id: int
    name: str
    user_id: int
    project_id: int
    kind: str
    worker_type: str
    status: str
    connected: bool
    draining: bool
    paused: bool
    trusted: bool
    profile: Profile
    limits: Mapping[str, Any]
    said: str | None

    @property
    def hardware(self) -> Mapping[str, Any]:
        return self.profile.hardware

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Its last measurements; most say that nobody else uses the GPU, which is seen at once."""
        return json.loads(self.said) if self.said and _foreign(self.said) else {}


def device_of(hardware: Mapping[str, Any]) -> str:
    gpu = hardware.get("gpu")
    return str(gpu or f"{hardware.get('cpu') or 'CPU'}, {hardware.get('cores') or '?'} cores")


def _foreign(metrics: str) -> bool:
    """Whether the text says of foreign use anything but null and 0."""
    at = metrics.find(_FOREIGN)
    return at >= 0 and metrics[at + len(_FOREIGN) :].lstrip()[:2] not in ("nu", "0,", "0}")


def fleet() -> list[Machine]:
    """Every worker that was not removed."""
    return [
        Machine(
            id, name, user_id, project_id, kind, worker_type, status, connection is not None,
            bool(draining), bool(paused), bool(trusted), _profile(hardware, benchmark),
            _parsed(limits), metrics,
        )
        for (
            id, name, user_id, project_id, kind, worker_type, status, connection, draining, paused,
            trusted, hardware, benchmark, limits, metrics,
        ) in database.execute_sql(_WORKERS).fetchall()
    ]  # fmt: skip


@lru_cache(maxsize=8192)
def _parsed(text: str | None) -> Mapping[str, Any]:
    """What rarely changes is parsed once; not to be written to."""
    return (json.loads(text) if text else None) or {}


@lru_cache(maxsize=8192)
def _profile(hardware_text: str | None, benchmark_text: str | None) -> Profile:
    hardware, benchmark = _parsed(hardware_text), _parsed(benchmark_text)
    has_gpu, score = bool(hardware.get("gpu")), float(benchmark.get("score", 0.0))
    memory = hardware.get("vram_total") or hardware.get("ram") or 0
    return Profile(
        hardware=hardware,
        device=device_of(hardware),
        has_gpu=has_gpu,
        score=score,
        tflops=float(benchmark.get("tflops") or ASSUMED_TFLOPS[has_gpu]),
        measured=bool(benchmark) and not benchmark.get("fallback"),
        strength=(score, has_gpu, memory),
    )


@dataclass(slots=True)
class Work:
    """What a worker is offered or runs."""

    task_id: int
    status: str
    job_id: int
    job_name: str
    progress: str

    @property
    def left_seconds(self) -> float | None:
        """Until it is done, by its own account."""
        eta = _progress(self.progress).get("eta_seconds")
        return float(eta) if eta is not None else None


@lru_cache(maxsize=4096)
def _progress(text: str) -> Mapping[str, Any]:
    return json.loads(text) or {}


def at_work() -> dict[int, Work]:
    """By worker."""
    return {row[0]: Work(*row[1:]) for row in database.execute_sql(_WORK).fetchall()}
