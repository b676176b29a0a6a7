"""Workers and the keys with which they enrol."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from parsyn.wire.api.base import In, Name, Out, Time
from parsyn.wire.states import JobKind, WorkerEventKind, WorkerStatus, WorkerType
from parsyn.wire.worker import Hardware


def _known_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"There is no time zone {name!r}; write one like Europe/Berlin or UTC."
        ) from None
    return name


Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
"""A time of day, `HH:MM`."""
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Timezone = Annotated[str, Field(max_length=60), AfterValidator(_known_timezone)]


class WorkingHours(In):
    """From `start` on each of `days` until the next `end`, so 22:00 to 06:00 ends the day after.

    Equal times are a whole day.
    """

    days: list[Weekday] = Field(min_length=1, max_length=7)
    start: Clock
    end: Clock
    timezone: Timezone = "UTC"


class WorkerLimits(In):
    """What its owner lets a worker do. Outside of `working_hours` nothing new is offered to it and
    what runs goes on; none are: always. `vram_cap` is in bytes. `projects` are those whose jobs
    it takes; null is all that may use it."""

    working_hours: list[WorkingHours] = Field(default=[], max_length=20)
    vram_cap: int | None = Field(default=None, ge=256 * 1024**2, le=2**50)
    projects: list[int] | None = Field(default=None, max_length=200)


class BenchmarkOut(Out):
    """`score` 100 is an RTX 4090. FP16 TFLOPS (or the best precision that a CPU has), GB/s read
    and written, the largest batch of a small block. `fallback`: not measured but assumed."""

    score: float
    tflops: float
    bandwidth_gbs: float
    max_batch: int
    fallback: bool
    precision: str | None = None
    measured_at: Time


class WorkerMetrics(Out):
    """Percent 0..100; memory in bytes. `vram_foreign` is what programs that are not the agent's
    hold of the GPU, and `foreign_processes` their number; null where that cannot be told."""

    gpu_utilization: float | None = None
    vram_used: int | None = None
    vram_total: int | None = None
    vram_foreign: int | None = None
    foreign_processes: int | None = None
    cpu: float | None = None
    ram: int | None = None
    ram_total: int | None = None
    disk_free: int | None = None
    at: Time | None = None


class CurrentJob(Out):
    """`id` is 0, and the name says no more than that, for a job that one may not see."""

    id: int
    kind: JobKind
    name: str
    percent: float | None
    eta_seconds: float | None


class WorkerOut(Out):
    """`unavailable` says in a sentence why a connected worker is offered nothing new now."""

    id: int
    name: str
    kind: Literal["user", "managed"]
    worker_type: WorkerType
    status: WorkerStatus
    project_id: int
    user_id: int
    device: str | None
    hardware: Hardware | None
    benchmark: BenchmarkOut | None
    metrics: WorkerMetrics | None
    current_job: CurrentJob | None
    limits: WorkerLimits
    paused: bool
    draining: bool
    unavailable: str | None
    last_seen_at: Time | None
    version: str | None
    created_at: Time


class WorkerIn(In):
    name: Name
    worker_type: WorkerType = WorkerType.BOTH
    project_id: int | None = None


class WorkerPatch(In):
    """`limits` takes the place of all limits that there were; it is for admins of the project."""

    name: Name | None = None
    worker_type: WorkerType | None = None
    limits: WorkerLimits | None = None


class WorkerEventOut(Out):
    """One line of a worker's history; `job_id` where it is about a job."""

    id: int
    at: Time
    kind: WorkerEventKind
    text: str
    job_id: int | None


class WorkerCreated(Out):
    """The key is shown once."""

    worker: WorkerOut
    api_key: str


class WorkersSummary(Out):
    """`avg_gpu_utilization` in percent over the online workers that have a GPU."""

    total: int
    online: int
    training: int
    idle: int
    avg_gpu_utilization: float | None


class MasterKeyIn(In):
    name: Name
    description: str | None = Field(default=None, max_length=1000)
    auto_name_prefix: str | None = Field(default=None, min_length=1, max_length=60)
    default_worker_type: WorkerType = WorkerType.BOTH
    max_enrollments: int | None = Field(default=None, ge=1)
    expires_at: Time | None = None
    project_id: int | None = None


class MasterKeyOut(Out):
    id: int
    name: str
    description: str | None
    prefix: str
    auto_name_prefix: str | None
    default_worker_type: WorkerType
    max_enrollments: int | None
    enrollments: int
    expires_at: Time | None
    revoked: bool
    created_at: Time


class MasterKeyCreated(MasterKeyOut):
    """The key itself is shown once."""

    key: str
