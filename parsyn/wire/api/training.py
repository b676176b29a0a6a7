"""Training jobs: what is asked for, how it goes, what it leaves."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from parsyn.wire.api.base import FieldProblem, In, Name, Out, Time
from parsyn.wire.states import JobKind, JobStatus, Priority
from parsyn.wire.tasks import Failure


class Distributed(In):
    enabled: bool = False


class WorkerSelection(In):
    mode: Literal["auto", "specific_user_workers", "specific_parsyn_workers", "mixed"] = "auto"
    worker_ids: list[int] = []
    parsyn_worker_ids: list[int] = []
    gpu_type: str | None = None


class TrainingAsked(In):
    """What a job is but for its data and model. `config` goes on top of the preset's; `export`
    names formats that shall follow: it is refused before training if it can't."""

    name: Name | None = None
    validation_dataset_id: int | None = None
    trainer: str = "sft"
    preset: str | None = None
    config: dict[str, Any] = {}
    distributed: Distributed = Distributed()
    worker_selection: WorkerSelection = WorkerSelection()
    export: list[str] = Field(default=[], max_length=8)
    priority: Priority = Priority.NORMAL
    project_id: int | None = None


class TrainingJobIn(TrainingAsked):
    dataset_id: int
    model_id: int


class TrainingDraftIn(TrainingAsked):
    """A job that is still being thought out."""

    dataset_id: int | None = None
    model_id: int | None = None


class TrainingJobPatch(In):
    name: Name | None = None


class DuplicateIn(In):
    """Any keys of the job to change; `config` is merged key by key."""

    changes: dict[str, Any] = {}


class ResumeIn(In):
    checkpoint_id: int | None = None


class ProgressOut(Out):
    """`percent` 0..100 of the whole task, `eta_seconds` to its end."""

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    percent: float | None = None
    eta_seconds: float | None = None
    phase: str | None = None


class RankedWorker(Out):
    """`predicted_seconds` is how long the job would run there, `basis` from what that is known;
    `wait_seconds` until the worker is free (0: now; null: not known)."""

    worker_id: int
    name: str
    reason: str
    busy: bool = False
    predicted_seconds: float | None = None
    wait_seconds: float | None = None
    basis: str | None = None


class PlacementOut(Out):
    """Why this machine: `ranked` fit, soonest done first, busy ones too; `refused` do not fit.

    `memory_bytes` is the least GPU memory that the job needs, `tokens` what it will train on, as
    far as known. Both lists are cut at 20; `passed_over` counts all that were refused.
    """

    chosen: RankedWorker | None = None
    ranked: list[RankedWorker] = []
    refused: list[RankedWorker] = []
    passed_over: int = 0
    waiting: str | None = None
    memory_bytes: int | None = None
    tokens: int | None = None
    at: Time | None = None


class JobOut(Out):
    """What every kind of job shows in lists; `waiting` says why a queued one does not run yet."""

    id: int
    kind: JobKind
    name: str
    status: JobStatus
    attempt: int
    project_id: int
    user_id: int
    progress: ProgressOut
    failure: Failure | None
    waiting: str | None
    priority: Priority
    worker_id: int | None
    worker_name: str | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None


class CheckOut(Out):
    """One finding before a run. `params` fill the sentence of `code` in another language;
    `fix` is a change of the request that mends it."""

    code: str
    level: Literal["ok", "warn", "error"]
    message: str
    advice: str | None = None
    params: dict[str, str | int | float] = {}
    fix: dict[str, Any] | None = None


class EstimateOut(Out):
    """Before a weight is loaded, by the trainer's own rules; null is not known.

    `tokens` are those of all epochs, `memory_bytes` the least that a GPU must have free.
    """

    training_rows: int | None = None
    validation_rows: int | None = None
    steps: int | None = None
    tokens: int | None = None
    effective_batch: int | None = None
    max_length: int | None = None
    trained_parameters: int | None = None
    memory_bytes: int | None = None


class TrainingDraftOut(Out):
    """What would be said to this job: `errors` refuse it, `checks` are worth knowing."""

    ok: bool
    errors: list[FieldProblem]
    checks: list[CheckOut]
    estimate: EstimateOut | None
    resolved_config: dict[str, Any] | None


class PreflightOut(Out):
    """`red`: it would be refused. `amber`: it can run, and there is something to know."""

    ok: bool
    verdict: Literal["green", "amber", "red"]
    checks: list[CheckOut]
    estimate: EstimateOut | None


class TrainingJobOut(JobOut):
    """`config` is what was asked for, `resolved_config` with every default filled in."""

    dataset_id: int
    dataset_name: str | None
    model_id: int
    model_name: str | None
    validation_dataset_id: int | None
    trainer: str
    preset: str | None = None
    config: dict[str, Any]
    resolved_config: dict[str, Any]
    export: list[str]
    worker_selection: WorkerSelection
    metrics_latest: dict[str, float]
    placement: PlacementOut
    unreachable_since: Time | None
    result_model_id: int | None
    cost_credits: int = 0


class MetricsOut(Out):
    """name → [[step, time, value], …]; steps count from 1, time in seconds since the epoch."""

    series: dict[str, list[tuple[int, float, float]]]


class LogEntry(Out):
    id: int
    at: Time
    level: Literal["debug", "info", "warning", "error"]
    text: str
    attempt: int


class LogsOut(Out):
    """`next` is the `since` of the following request."""

    items: list[LogEntry]
    next: int


class CheckpointOut(Out):
    id: int
    step: int
    epoch: float | None
    attempt: int
    metrics: dict[str, float]
    best: bool
    size: int
    created_at: Time


class EventOut(Out):
    """One transition and its cause."""

    id: int
    at: Time
    attempt: int
    status: str
    cause: str
    worker_id: int | None


class SampleOut(Out):
    step: int
    at: Time
    prompt: list[dict[str, Any]]
    text: str
    reference: str | None


class ArtifactOut(Out):
    id: int
    kind: str
    round: int | None = None
    worker_id: int | None
    step: int | None
    path: str
    size: int
    sha256: str


class TrainerOut(Out):
    name: str
    title: str
    accepts: list[str]
    schema_: dict[str, Any] = Field(alias="schema")

    model_config = ConfigDict(populate_by_name=True)


class OverviewOut(Out):
    """Storage in bytes."""

    running: list[JobOut]
    needs_attention: list[JobOut]
    recent_jobs: list[JobOut]
    storage_bytes: int
    datasets: int
    models: int
    workers: int
