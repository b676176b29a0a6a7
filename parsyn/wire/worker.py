"""The protocol of `/ws/worker`: JSON text frames, two tagged unions, one protocol number.

Messages that must not be lost (`state`, `log`, `metric`, `sample`, `checkpoint`, `result`) carry
`(task_id, attempt, seq)`; the agent keeps them on disk until the hub acknowledges each `seq`
after its commit. A message with an older attempt than the task's is acknowledged, not applied,
and answered with `cancel`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from parsyn.wire.refs import FileRef, Frozen, ModelRef
from parsyn.wire.states import TaskPhase, WorkerType
from parsyn.wire.tasks import Failure, Manifest, TaskSpec

PROTOCOL = 1


class CloseCode(IntEnum):
    """Why the hub closed an agent's socket. 4xxx codes tell an agent not to hammer."""

    GOING_AWAY = 1001
    SERVICE_RESTART = 1012
    BAD_MESSAGE = 4400
    BAD_CREDENTIAL = 4401
    REVOKED = 4403
    SILENT = 4408
    ALREADY_CONNECTED = 4409
    KEY_EXHAUSTED = 4410
    PROTOCOL_TOO_OLD = 4426
    PROTOCOL_TOO_NEW = 4427


class TaskKey(Frozen):
    task_id: int
    attempt: int


class Spooled(TaskKey):
    """A message that is kept on the agent's disk until it is acknowledged; `seq` counts from 1."""

    seq: int = Field(ge=1)


# --- worker -> hub ---------------------------------------------------------------------------


class Hardware(Frozen):
    """What the machine is. Memory in bytes."""

    gpu: str | None = None
    vram_total: int | None = None
    cuda: str | None = None
    driver: str | None = None
    cpu: str = ""
    cores: int = 0
    ram: int = 0
    torch: str | None = None
    bf16: bool = False
    bitsandbytes: bool = False
    platform: str = ""


class Hello(Frozen):
    """`instance` is random and one for each start of an agent: with it the hub tells an agent that
    comes back (its old socket is dropped) from a second one with the same key (it is refused)."""

    type: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    version: str
    name: str | None = None
    worker_type: WorkerType = WorkerType.BOTH
    device: str = "cpu"
    max_batch_size: int = 32
    hardware: Hardware = Hardware()
    trust_remote_code: bool = False
    running: tuple[TaskKey, ...] = ()
    draining: bool | None = None
    instance: str | None = None


class Heartbeat(Frozen):
    """`draining` is what the owner of the machine has said there since it was last told."""

    type: Literal["heartbeat"] = "heartbeat"
    running: tuple[TaskKey, ...] = ()
    draining: bool | None = None


class SystemMetrics(Frozen):
    """Utilisation in percent 0..100, memory and disk in bytes.

    `vram_foreign` is what processes hold that this agent did not start; null: not known.
    """

    type: Literal["system_metrics"] = "system_metrics"
    at: float
    gpu_utilization: float | None = None
    vram_used: int | None = None
    vram_total: int | None = None
    vram_foreign: int | None = None
    foreign_processes: int | None = None
    cpu: float = 0.0
    ram_used: int = 0
    ram_total: int = 0
    disk_free: int | None = None


class Benchmark(Frozen):
    """TFLOPS in `precision`, GB/s read and written; `fallback` where values are assumed."""

    type: Literal["benchmark"] = "benchmark"
    score: float
    tflops: float
    bandwidth_gbs: float
    max_batch: int
    fallback: bool = False
    precision: str | None = None
    measured_at: float


class Accepted(TaskKey):
    type: Literal["accepted"] = "accepted"


class Refused(TaskKey):
    type: Literal["refused"] = "refused"
    reason: str


class State(Spooled):
    """Progress of a running task. `eta` in seconds; `percent` is of the whole task."""

    type: Literal["state"] = "state"
    at: float
    phase: TaskPhase
    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    percent: float | None = None
    eta: float | None = None


class LogLine(Frozen):
    at: float
    level: Literal["debug", "info", "warning", "error"] = "info"
    text: str


class Log(Spooled):
    type: Literal["log"] = "log"
    lines: tuple[LogLine, ...]


class MetricPoint(Frozen):
    """Values by name at one step. NaN and Inf do not travel: a diverged run fails instead."""

    step: int
    at: float
    values: dict[str, float]


class Metric(Spooled):
    type: Literal["metric"] = "metric"
    points: tuple[MetricPoint, ...]


class Sample(Spooled):
    """An answer that the model gave during training."""

    type: Literal["sample"] = "sample"
    at: float
    step: int
    prompt: tuple[dict[str, Any], ...]
    text: str
    reference: str | None = None


class Checkpoint(Spooled):
    """The manifest of a checkpoint whose files are stored already."""

    type: Literal["checkpoint"] = "checkpoint"
    at: float
    step: int
    epoch: float | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    best: bool = False
    files: tuple[FileRef, ...]


class WantTicket(Frozen):
    """Ask for a short-lived right to one object, for a task attempt or (get only) for a chat.

    get: `key` is one of the keys in the task's spec or the chat's model. put: `path` is relative
    to the task's own folder ("checkpoints/120/adapter_model.safetensors", "result/model.gguf");
    the ticket answers with the key, which holds the attempt.
    """

    type: Literal["want_ticket"] = "want_ticket"
    request_id: str
    op: Literal["get", "put"]
    task_id: int | None = None
    attempt: int | None = None
    chat_id: str | None = None
    key: str | None = None
    path: str | None = None
    size: int | None = None
    sha256: str | None = None


class Stored(TaskKey):
    """An object was put where its ticket said."""

    type: Literal["stored"] = "stored"
    file: FileRef


class Token(Frozen):
    """A piece of a chat answer; `n` counts from 1. `phase` says what happens before the first."""

    type: Literal["token"] = "token"
    chat_id: str
    n: int
    text: str = ""
    phase: Literal["downloading", "loading", "generating"] | None = None
    done: int | None = None
    total: int | None = None


class Usage(Frozen):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Timings(Frozen):
    """Seconds, and completion tokens per second after the first token."""

    load_seconds: float = 0.0
    first_token_seconds: float = 0.0
    total_seconds: float = 0.0
    tokens_per_second: float = 0.0


class ChatDone(Frozen):
    type: Literal["chat_done"] = "chat_done"
    chat_id: str
    finish_reason: Literal["stop", "length", "cancelled", "error"]
    usage: Usage = Usage()
    timings: Timings = Timings()
    failure: Failure | None = None


class Result(Spooled):
    """The terminal answer of a task. The same one twice is one."""

    type: Literal["result"] = "result"
    at: float
    outcome: Literal["completed", "failed", "cancelled"]
    manifest: Manifest | None = None
    failure: Failure | None = None


WorkerMessage = Annotated[
    Hello
    | Heartbeat
    | SystemMetrics
    | Benchmark
    | Accepted
    | Refused
    | State
    | Log
    | Metric
    | Sample
    | Checkpoint
    | WantTicket
    | Stored
    | Token
    | ChatDone
    | Result,
    Field(discriminator="type"),
]

# --- hub -> worker ---------------------------------------------------------------------------


class Welcome(Frozen):
    """The hub knows this agent. `api_key` is set once, after an enrolment.

    An agent that has had no answer for `self_fence_seconds` stops its tasks by itself.
    `stale` are the running tasks that the agent named and must stop without a result.
    """

    type: Literal["welcome"] = "welcome"
    protocol: int = PROTOCOL
    version: str
    worker_id: int
    name: str
    api_key: str | None = None
    heartbeat_seconds: float = 30.0
    metrics_seconds: float = 5.0
    self_fence_seconds: float = 150.0
    stale: tuple[TaskKey, ...] = ()


class HeartbeatAck(Frozen):
    type: Literal["heartbeat_ack"] = "heartbeat_ack"
    at: float


class Ack(TaskKey):
    type: Literal["ack"] = "ack"
    seqs: tuple[int, ...]


class Offer(TaskKey):
    """`needs_vram` is the least GPU memory, in bytes, without which the task cannot run."""

    type: Literal["offer"] = "offer"
    job_id: int
    name: str
    spec: TaskSpec
    seconds_to_accept: float = 10.0
    needs_vram: int | None = None


class Cancel(TaskKey):
    """Stop the task. `stale` ones are stopped without a result: another attempt owns it."""

    type: Literal["cancel"] = "cancel"
    reason: Literal["user", "stale", "timeout", "drain"] = "user"


class Ticket(Frozen):
    """The answer to `want_ticket`: an address below the hub (or of S3), or why not."""

    type: Literal["ticket"] = "ticket"
    request_id: str
    url: str | None = None
    method: Literal["GET", "PUT"] = "GET"
    headers: dict[str, str] = Field(default_factory=dict)
    key: str | None = None
    expires_at: float = 0.0
    error: str | None = None


class Sampling(Frozen):
    """How to sample. `temperature` 0 is greedy."""

    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0, le=1000)
    max_tokens: int = Field(default=512, ge=1, le=32768)
    stop: tuple[str, ...] = Field(default=(), max_length=8)
    seed: int | None = None


class Chat(Frozen):
    """Generate one answer. Files of `model` are fetched with tickets of this `chat_id`."""

    type: Literal["chat"] = "chat"
    chat_id: str
    model: ModelRef
    messages: tuple[dict[str, Any], ...]
    sampling: Sampling = Sampling()
    raw_prompt: str | None = None


class ChatCancel(Frozen):
    type: Literal["chat_cancel"] = "chat_cancel"
    chat_id: str


class Load(Frozen):
    """Bring a model into memory before it is asked for."""

    type: Literal["load"] = "load"
    model: ModelRef


class Unload(Frozen):
    type: Literal["unload"] = "unload"
    model_id: int


class Drain(Frozen):
    """Finish what runs, take nothing new."""

    type: Literal["drain"] = "drain"
    on: bool = True


class Measure(Frozen):
    """Measure the machine again as soon as nothing runs, and send a `benchmark`."""

    type: Literal["measure"] = "measure"


class Limits(Frozen):
    """What the machine's owner allows: bytes of GPU memory for a child; null is all of it."""

    type: Literal["limits"] = "limits"
    vram_cap: int | None = None


HubMessage = Annotated[
    Welcome
    | HeartbeatAck
    | Ack
    | Offer
    | Cancel
    | Ticket
    | Chat
    | ChatCancel
    | Load
    | Unload
    | Drain
    | Measure
    | Limits,
    Field(discriminator="type"),
]

worker_messages: TypeAdapter[WorkerMessage] = TypeAdapter(WorkerMessage)
hub_messages: TypeAdapter[HubMessage] = TypeAdapter(HubMessage)


def is_unknown(error: ValidationError) -> bool:
    """Whether a frame is a message of a type that this version does not know.

    Within one protocol number a newer peer may send such; they are ignored.
    """
    return all(item["type"] == "union_tag_invalid" for item in error.errors())
