"""Models, their files and lineage, exports and evaluations."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from parsyn.wire.api.base import In, Name, Out, Time
from parsyn.wire.states import JobStatus, ModelSource, ModelState
from parsyn.wire.tasks import Failure


class ModelIn(In):
    name: Name
    source: Literal["hub", "upload"]
    hub_id: str | None = Field(default=None, max_length=200)
    revision: str | None = Field(default=None, max_length=200)
    upload_ids: list[int] | None = None
    project_id: int | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ModelIn:
        if self.source == "hub" and not self.hub_id:
            raise ValueError("hub_id is needed when source is hub, for example org/name.")
        if self.source == "upload" and not self.upload_ids:
            raise ValueError("upload_ids is needed when source is upload.")
        return self


class ModelPatch(In):
    name: Name | None = None


class ModelOut(Out):
    """`parameters` is a count, `size` bytes, `formats` what it exists in (hf, adapter, gguf)."""

    id: int
    name: str
    slug: str
    state: ModelState
    source: ModelSource
    project_id: int
    user_id: int
    hub_id: str | None
    revision: str | None
    base_model_id: int | None
    training_job_id: int | None
    version: int
    architecture: str | None
    parameters: int | None
    context_length: int | None
    formats: list[str]
    chat_template: str | None
    license: str | None
    size: int
    failure: Failure | None = None
    job_id: int | None = None
    created_at: Time


class ModelFileOut(Out):
    path: str
    size: int
    sha256: str


class LineageNode(Out):
    """`key` is unique in the graph, `status` the state of what it stands for."""

    key: str
    kind: Literal["model", "dataset", "job", "export", "evaluation"]
    id: int
    name: str
    status: str


class LineageEdge(Out):
    source: str
    target: str
    label: str


class LineageOut(Out):
    nodes: list[LineageNode]
    edges: list[LineageEdge]


class ExportIn(In):
    format: str
    params: dict[str, Any] = {}


class ParityOut(Out):
    """How far the exported model answers as the trained one: share of equal greedy tokens."""

    token_agreement: float | None = None
    compared_tokens: int = 0
    verdict: str


class ExportOut(Out):
    id: int
    name: str
    model_id: int
    format: str
    params: dict[str, Any]
    status: JobStatus
    phase: str | None
    percent: float | None
    files: list[ModelFileOut]
    parity: ParityOut | None
    failure: Failure | None
    log_url: str
    waiting: str | None
    worker_id: int | None
    worker_name: str | None
    attempt: int
    created_at: Time
    started_at: Time | None
    finished_at: Time | None


class ExporterOut(Out):
    """`refuses` is a sentence when the model that was asked about cannot be exported so."""

    name: str
    title: str
    schema_: dict[str, Any] = Field(alias="schema")
    refuses: str | None = None

    model_config = ConfigDict(populate_by_name=True)


class EvaluationIn(In):
    model_id: int
    dataset_id: int
    evaluator: str = "perplexity"
    params: dict[str, Any] = {}


class MetricValue(Out):
    value: float
    stderr: float | None = None
    better: Literal["lower", "higher"]


class EvaluationOut(Out):
    id: int
    name: str
    model_id: int
    dataset_id: int
    evaluator: str
    params: dict[str, Any]
    status: JobStatus
    phase: str | None
    percent: float | None
    metrics: dict[str, MetricValue] | None
    failure: Failure | None
    waiting: str | None
    worker_id: int | None
    worker_name: str | None
    attempt: int
    created_at: Time
    started_at: Time | None
    finished_at: Time | None


class EvaluatorOut(Out):
    name: str
    title: str
    schema_: dict[str, Any] = Field(alias="schema")

    model_config = ConfigDict(populate_by_name=True)
