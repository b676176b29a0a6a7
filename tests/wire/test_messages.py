"""Every message of the worker protocol: on the wire and back, from newer peers, and from nobody."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from parsyn.wire.refs import DatasetRef, FileRef, ModelRef
from parsyn.wire.states import FailureReason, FileFormat, SchemaKind, TaskPhase
from parsyn.wire.tasks import Failure, Manifest, TrainSpec
from parsyn.wire.worker import (
    Accepted,
    Ack,
    Benchmark,
    Cancel,
    Chat,
    ChatCancel,
    ChatDone,
    Checkpoint,
    Drain,
    Hardware,
    Heartbeat,
    HeartbeatAck,
    Hello,
    HubMessage,
    Limits,
    Load,
    Log,
    LogLine,
    Measure,
    Metric,
    MetricPoint,
    Offer,
    Refused,
    Result,
    Sample,
    Sampling,
    State,
    Stored,
    SystemMetrics,
    TaskKey,
    Ticket,
    Timings,
    Token,
    Unload,
    Usage,
    WantTicket,
    Welcome,
    WorkerMessage,
    hub_messages,
    worker_messages,
)

FILE = FileRef(path="adapter_model.safetensors", key="jobs/1/2/adapter", size=10, sha256="ab" * 32)
MODEL = ModelRef(id=1, name="Base", slug="base", hub_id="org/base", revision="main")
DATA = DatasetRef(
    id=2, name="rows", file=FILE, file_format=FileFormat.JSONL, schema_kind=SchemaKind.MESSAGES
)
KEY: dict[str, Any] = {"task_id": 1, "attempt": 2}
FAILURE = Failure(reason=FailureReason.DIVERGED, message="The loss is NaN.", advice="Lower it.")

FROM_WORKER = [
    Hello(version="0.1.0", hardware=Hardware(cores=2, ram=8), running=(TaskKey(**KEY),)),
    Heartbeat(running=(TaskKey(**KEY),)),
    SystemMetrics(at=1.5, cpu=40.0, ram_used=3, ram_total=8),
    Benchmark(score=4.5, tflops=0.9, bandwidth_gbs=12.0, max_batch=8, measured_at=1.5),
    Accepted(**KEY),
    Refused(**KEY, reason="The device is busy."),
    State(**KEY, seq=1, at=1.5, phase=TaskPhase.TRAINING, step=3, total_steps=9),
    Log(**KEY, seq=2, lines=(LogLine(at=1.5, level="warning", text="é\u2028 ends"),)),
    Metric(**KEY, seq=3, points=(MetricPoint(step=3, at=1.5, values={"loss": 1.25}),)),
    Sample(**KEY, seq=4, at=1.5, step=3, prompt=({"role": "user", "content": "Hi"},), text="Yes"),
    Checkpoint(**KEY, seq=5, at=1.5, step=3, metrics={"eval_loss": 1.0}, best=True, files=(FILE,)),
    WantTicket(request_id="a", op="put", **KEY, path="result/model.gguf", size=10),
    Stored(**KEY, file=FILE),
    Token(chat_id="c", n=1, text=" word"),
    ChatDone(chat_id="c", finish_reason="stop", usage=Usage(prompt_tokens=3), timings=Timings()),
    Result(**KEY, seq=6, at=1.5, outcome="failed", failure=FAILURE),
]
FROM_HUB = [
    Welcome(version="0.1.0", worker_id=7, name="rig", stale=(TaskKey(**KEY),)),
    HeartbeatAck(at=1.5),
    Ack(**KEY, seqs=(1, 2, 3)),
    Offer(
        **KEY,
        job_id=3,
        name="First",
        spec=TrainSpec(trainer="sft", params={"epochs": 1}, model=MODEL, dataset=DATA),
    ),
    Cancel(**KEY, reason="stale"),
    Ticket(request_id="a", url="/storage/x", key="k", expires_at=9.0),
    Chat(
        chat_id="c",
        model=MODEL,
        messages=({"role": "user", "content": "Hi"},),
        sampling=Sampling(temperature=0),
    ),
    ChatCancel(chat_id="c"),
    Load(model=MODEL),
    Unload(model_id=1),
    Drain(on=False),
    Measure(),
    Limits(vram_cap=8 << 30),
]
BOTH = [(worker_messages, message) for message in FROM_WORKER]
BOTH += [(hub_messages, message) for message in FROM_HUB]


def name_of(value: Any) -> str:
    return str(getattr(value, "type", ""))


def test_there_is_one_of_each() -> None:
    for union, made in ((WorkerMessage, FROM_WORKER), (HubMessage, FROM_HUB)):
        assert [type(message) for message in made] == list(get_args(get_args(union)[0]))


@pytest.mark.parametrize(("adapter", "message"), BOTH, ids=name_of)
def test_a_message_is_the_same_on_the_other_side(adapter: Any, message: Any) -> None:
    assert adapter.validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize(("adapter", "message"), BOTH, ids=name_of)
def test_what_a_newer_peer_adds_is_left_aside(adapter: Any, message: Any) -> None:
    newer = {**json.loads(message.model_dump_json()), "from_the_future": {"deep": [1]}}
    assert adapter.validate_json(json.dumps(newer)) == message


@pytest.mark.parametrize(("adapter", "message"), BOTH, ids=name_of)
def test_a_message_cannot_be_changed(adapter: Any, message: Any) -> None:
    with pytest.raises(ValidationError):
        message.type = "other"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"type": "nonsense"}',
        '{"type": "log", "task_id": 1, "attempt": 1, "seq": 0, "lines": []}',
        '{"type": "metric", "task_id": 1, "attempt": 1, "points": []}',
        '{"type": "result", "task_id": 1, "attempt": 1, "seq": 1, "at": 1, "outcome": "won"}',
        '{"type": "accepted", "task_id": "x", "attempt": 1}',
    ],
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        worker_messages.validate_json(text)


def test_equal_manifests_are_the_same_result() -> None:
    one = Manifest(files=(FILE,), facts={"steps": 3})
    assert one == Manifest.model_validate_json(one.model_dump_json())
    assert one != Manifest(files=(FILE,), facts={"steps": 4})
