"""What `/ws/dashboard` sends and takes.

Topics: `job:<id>` (any kind of job), `dataset:<id>`, `fleet`, `project:<id>` (state of anything in
it), `notifications`. Every event carries its topic and a number that grows per connection.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from parsyn.wire.refs import Frozen


class EventType(StrEnum):
    """The data of each, in brackets."""

    SNAPSHOT = "snapshot"  # {job|dataset|workers}: what the GET of that subject answers
    JOB_STATE = "job.state"  # JobOut, as GET answers it
    JOB_METRICS = "job.metrics"  # {"points": [{"step", "at", "values": {name: value}}]}
    JOB_LOG = "job.log"  # {"items": [LogEntry]}
    JOB_PROGRESS = "job.progress"  # ProgressOut; on a project's topic with the job's "id" too
    JOB_SAMPLE = "job.sample"  # SampleOut
    JOB_CHECKPOINT = "job.checkpoint"  # CheckpointOut
    JOB_ROUND = "job.round"
    WORKER_METRICS = "worker.metrics"  # {"id", "metrics": WorkerMetrics}
    WORKER_STATE = "worker.state"  # WorkerOut, or {"id", "deleted": true}
    DATASET_STATE = "dataset.state"  # DatasetOut, or {"id", "deleted": true}
    MODEL_STATE = "model.state"  # ModelOut, or {"id", "deleted": true}
    EXPORT_STATE = "export.state"  # ExportOut
    NOTIFICATION = "notification"
    RESUBSCRIBE = "resubscribe"  # the client was too slow; it should subscribe again
    ERROR = "error"  # a Problem
    PONG = "pong"


class Event(Frozen):
    """`seq` counts up from 1 on each connection."""

    type: EventType
    topic: str | None = None
    seq: int = 0
    data: dict[str, Any] = Field(default_factory=dict)


class Authenticate(Frozen):
    """The first message of a client without a cookie."""

    type: Literal["authenticate"] = "authenticate"
    token: str


class Subscribe(Frozen):
    type: Literal["subscribe"] = "subscribe"
    topics: tuple[str, ...] = Field(max_length=100)


class Unsubscribe(Frozen):
    type: Literal["unsubscribe"] = "unsubscribe"
    topics: tuple[str, ...] = Field(max_length=100)


class Ping(Frozen):
    type: Literal["ping"] = "ping"


ClientMessage = Annotated[
    Authenticate | Subscribe | Unsubscribe | Ping, Field(discriminator="type")
]
client_messages: TypeAdapter[ClientMessage] = TypeAdapter(ClientMessage)
