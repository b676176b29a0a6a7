"""What an agent is asked to do: one spec a kind of task, and what comes back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from parsyn.wire.refs import CheckpointRef, DatasetRef, FileRef, Frozen, ModelRef
from parsyn.wire.states import FailureReason


class TrainSpec(Frozen):
    kind: Literal["train"] = "train"
    trainer: str
    params: dict[str, Any]
    model: ModelRef
    dataset: DatasetRef
    validation: DatasetRef | None = None
    resume: CheckpointRef | None = None


class EvaluateSpec(Frozen):
    kind: Literal["evaluate"] = "evaluate"
    evaluator: str
    params: dict[str, Any]
    model: ModelRef
    dataset: DatasetRef


class ExportSpec(Frozen):
    kind: Literal["export"] = "export"
    exporter: str
    params: dict[str, Any]
    model: ModelRef


class DownloadSpec(Frozen):
    """Fetch a model from the Hugging Face Hub into the agent's cache and describe it.

    `model.hub_id` is set; `model.revision` may be a branch, the answer names the commit.
    The result's files are the small ones that the hub itself needs (config, tokenizer,
    chat template, licence), its `facts` are architecture, parameters, context_length,
    revision, license and size.
    """

    kind: Literal["download"] = "download"
    model: ModelRef


TaskSpec = Annotated[
    TrainSpec | EvaluateSpec | ExportSpec | DownloadSpec, Field(discriminator="kind")
]


class Failure(Frozen):
    """Why a task or job failed: a closed reason, the line that says so, what to change."""

    reason: FailureReason
    message: str
    line: str | None = None
    advice: str | None = None


class Manifest(Frozen):
    """Everything that a finished task leaves behind. Equal manifests are the same result.

    `files` are stored already. `facts` depends on the kind of task: for training
    {"steps", "best_step", "final_loss", "method", "trained_tokens", "duration_seconds"},
    for an evaluation {"metrics": {"perplexity": {"value", "stderr", "better"}}},
    for an export {"format", "quantization", "parity"}, for a download see `DownloadSpec`.
    """

    files: tuple[FileRef, ...] = ()
    facts: dict[str, Any] = Field(default_factory=dict)
