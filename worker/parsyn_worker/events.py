"""What travels between the agent and its children: orders in, events out, one JSON line each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from parsyn.plugin.task import LocalDataset, LocalModel
from parsyn.wire.refs import Frozen
from parsyn.wire.states import TaskPhase
from parsyn.wire.tasks import Failure
from parsyn.wire.worker import ChatDone, LogLine, MetricPoint, Sampling, Token

EVENTS_FD = "PARSYN_EVENTS_FD"
"""The variable that names the inherited descriptor to which a child writes its events."""


class TaskOrder(Frozen):
    """What a task's child is to do; every path is on this machine."""

    kind: Literal["train", "evaluate", "export"]
    plugin: str
    params: dict[str, Any]
    folder: Path
    device: str
    max_batch_size: int
    trust_remote_code: bool
    model: LocalModel
    dataset: LocalDataset | None = None
    validation: LocalDataset | None = None
    resume: Path | None = None


class DownloadOrder(Frozen):
    """Fetch a revision of a model of the Hugging Face Hub below `root`."""

    hub_id: str
    revision: str | None
    root: Path


class LogEvent(Frozen):
    type: Literal["log"] = "log"
    line: LogLine


class PhaseEvent(Frozen):
    type: Literal["phase"] = "phase"
    phase: TaskPhase
    done: int | None = None
    total: int | None = None


class ProgressEvent(Frozen):
    type: Literal["progress"] = "progress"
    step: int
    total_steps: int
    epoch: float | None = None


class MetricEvent(Frozen):
    type: Literal["metric"] = "metric"
    point: MetricPoint


class SampleEvent(Frozen):
    type: Literal["sample"] = "sample"
    at: float
    step: int
    prompt: tuple[dict[str, Any], ...]
    text: str
    reference: str | None = None


class CheckpointEvent(Frozen):
    """`folder` belongs to the agent from now on."""

    type: Literal["checkpoint"] = "checkpoint"
    at: float
    step: int
    folder: Path
    epoch: float | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    best: bool = False


class DoneEvent(Frozen):
    type: Literal["done"] = "done"
    folder: Path | None = None
    facts: dict[str, Any] = Field(default_factory=dict)


class FailedEvent(Frozen):
    type: Literal["failed"] = "failed"
    failure: Failure


class CancelledEvent(Frozen):
    type: Literal["cancelled"] = "cancelled"


TerminalEvent = DoneEvent | FailedEvent | CancelledEvent
TaskEvent = Annotated[
    LogEvent
    | PhaseEvent
    | ProgressEvent
    | MetricEvent
    | SampleEvent
    | CheckpointEvent
    | DoneEvent
    | FailedEvent
    | CancelledEvent,
    Field(discriminator="type"),
]
task_events: TypeAdapter[TaskEvent] = TypeAdapter(TaskEvent)


class InferSettings(Frozen):
    """The first line that the inference child reads."""

    device: str
    quantization: Literal["none", "4bit", "8bit"]
    trust_remote_code: bool
    max_models: int


class ChatOrder(Frozen):
    """Generate one answer, with a model that is on this machine's disk.

    `asked_at`: when the agent got the question, seconds since the epoch.
    """

    type: Literal["chat"] = "chat"
    chat_id: str
    asked_at: float
    model_id: int
    model: LocalModel
    messages: tuple[dict[str, Any], ...]
    sampling: Sampling
    raw_prompt: str | None = None


class CancelOrder(Frozen):
    type: Literal["cancel"] = "cancel"
    chat_id: str


class LoadOrder(Frozen):
    type: Literal["load"] = "load"
    model_id: int
    model: LocalModel


class UnloadOrder(Frozen):
    """Free a model, or with None all that are not in use."""

    type: Literal["unload"] = "unload"
    model_id: int | None = None


InferOrder = Annotated[
    ChatOrder | CancelOrder | LoadOrder | UnloadOrder, Field(discriminator="type")
]
infer_orders: TypeAdapter[InferOrder] = TypeAdapter(InferOrder)

answers: TypeAdapter[Token | ChatDone] = TypeAdapter(
    Annotated[Token | ChatDone, Field(discriminator="type")]
)
