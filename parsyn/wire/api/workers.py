"""Workers and the keys with which they enrol."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parsyn.wire.api.base import In, Name, Out, Time
from parsyn.wire.states import WorkerStatus, WorkerType
from parsyn.wire.worker import Hardware


class BenchmarkOut(Out):
    score: float
    tflops: float
    bandwidth_gbs: float
    max_batch: int
    fallback: bool
    measured_at: Time


class WorkerMetrics(Out):
    """Percent 0..100; memory in bytes."""

    gpu_utilization: float | None = None
    vram_used: int | None = None
    vram_total: int | None = None
    cpu: float | None = None
    ram: int | None = None
    ram_total: int | None = None
    disk_free: int | None = None
    at: Time | None = None


class CurrentJob(Out):
    id: int
    kind: str
    name: str
    percent: float | None
    eta_seconds: float | None


class WorkerOut(Out):
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
    last_seen_at: Time | None
    version: str | None
    created_at: Time


class WorkerIn(In):
    name: Name
    worker_type: WorkerType = WorkerType.BOTH
    project_id: int | None = None


class WorkerPatch(In):
    name: Name | None = None
    worker_type: WorkerType | None = None


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
