"""The spool: sequence numbers, acknowledgements, restarts, and what goes when it is full."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from parsyn.wire.states import TaskPhase
from parsyn.wire.worker import (
    Checkpoint,
    Log,
    LogLine,
    Metric,
    MetricPoint,
    Result,
    Spooled,
    State,
    TaskKey,
    worker_messages,
)
from parsyn_worker.spool import Spool

KEY = TaskKey(task_id=1, attempt=1)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool.db", 1 << 20)
    yield spool
    spool.close()


def message(kind: str, key: TaskKey, seq: int, text: str = "") -> Spooled:
    at: dict[str, Any] = {"task_id": key.task_id, "attempt": key.attempt, "seq": seq}
    if kind == "metric":
        point = MetricPoint(step=seq, at=0, values={"loss": 1.0, text or "x": 0.0})
        return Metric(**at, points=(point,))
    if kind == "log":
        return Log(**at, lines=(LogLine(at=0, text=text),))
    if kind == "state":
        return State(**at, at=0, phase=TaskPhase.TRAINING)
    if kind == "checkpoint":
        return Checkpoint(**at, at=0, step=seq, files=())
    return Result(**at, at=0, outcome="cancelled")


def put(spool: Spool, kind: str, key: TaskKey = KEY, text: str = "") -> int:
    return spool.put(key, lambda seq: message(kind, key, seq, text))


def waiting(spool: Spool) -> list[Spooled]:
    found = [worker_messages.validate_json(item.body) for item in spool.waiting(0, 10_000)]
    assert all(isinstance(item, Spooled) for item in found)
    return found  # type: ignore[return-value]


def test_counts_from_one_for_each_attempt(spool: Spool) -> None:
    other = TaskKey(task_id=1, attempt=2)
    assert [put(spool, "log"), put(spool, "log"), put(spool, "log", other)] == [1, 2, 1]


def test_a_number_is_never_used_again(spool: Spool, tmp_path: Path) -> None:
    put(spool, "log")
    spool.acknowledge(KEY, (1,))
    again = Spool(tmp_path / "spool.db", 1 << 20)
    assert put(again, "log") == 2
    again.close()


def test_an_attempt_is_forgotten_when_its_result_is_acknowledged(spool: Spool) -> None:
    spool.begin(KEY, "training")
    put(spool, "log")
    put(spool, "result")
    assert spool.unfinished() == []
    spool.acknowledge(KEY, (2,))
    assert [item.seq for item in waiting(spool)] == [1]
    spool.acknowledge(KEY, (1,))
    assert spool.size() == 0
    assert put(spool, "log") == 1


def test_a_message_and_its_delivery_are_one(spool: Spool, tmp_path: Path) -> None:
    spool.begin(KEY, "training")
    spool.deliver(KEY, "checkpoint", tmp_path, "{}")
    spool.deliver(KEY, "result", None, "{}")
    first, second = spool.deliveries(KEY)
    assert spool.unfinished() == []

    def fails(seq: int) -> Spooled:
        raise ValueError(seq)

    with pytest.raises(ValueError, match="1"):
        spool.put(KEY, fails, delivered=first.id)
    assert len(spool.deliveries(KEY)) == 2
    assert spool.put(KEY, lambda seq: message("checkpoint", KEY, seq), delivered=first.id) == 1
    assert spool.deliveries(KEY) == [second]
    assert spool.delivering() == [KEY]


def test_a_full_spool_thins_metrics_then_logs_and_nothing_else(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", 100_000)
    for number in range(2000):
        put(spool, "metric", text="m" * 40)
        if number % 50 == 0:
            put(spool, "state")
            put(spool, "checkpoint")
    put(spool, "log", text="the first line")
    put(spool, "result")
    kinds = [item.type for item in waiting(spool)]  # type: ignore[attr-defined]
    assert spool.size() <= 100_000
    assert [kinds.count(kind) for kind in ("state", "checkpoint", "result")] == [40, 40, 1]
    assert kinds.count("log") == 1
    steps = [item.points[0].step for item in waiting(spool) if isinstance(item, Metric)]
    assert len(steps) > 100
    # The curve keeps its shape: no gap is far wider than the others.
    gaps = [b - a for a, b in pairwise(steps)]
    assert max(gaps) < len(gaps)
    for _ in range(200):
        put(spool, "log", text="l" * 2000)
    assert spool.size() <= 100_000
    kinds = [item.type for item in waiting(spool)]  # type: ignore[attr-defined]
    assert [kinds.count(kind) for kind in ("state", "checkpoint", "result")] == [40, 40, 1]
    assert kinds.count("metric") == 2
    spool.close()


class SpoolMachine(RuleBasedStateMachine):
    """Against a model that keeps everything in a dictionary."""

    keys = st.builds(TaskKey, task_id=st.integers(1, 2), attempt=st.integers(1, 2))
    kinds = st.sampled_from(["metric", "log", "state", "checkpoint"])

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "spool.db"
        self.spool = Spool(self.path, 1 << 20)
        self.sent: list[tuple[TaskKey, int]] = []
        self.last: dict[TaskKey, int] = {}

    @rule(key=keys, kind=kinds)
    def put(self, key: TaskKey, kind: str) -> None:
        seq = put(self.spool, kind, key)
        assert seq == self.last.get(key, 0) + 1
        self.last[key] = seq
        self.sent.append((key, seq))

    @rule(index=st.integers(0, 5))
    def acknowledge(self, index: int) -> None:
        if index < len(self.sent):
            key, seq = self.sent.pop(index)
            self.spool.acknowledge(key, (seq, seq + 1000))

    @rule(key=keys)
    def forget(self, key: TaskKey) -> None:
        self.spool.forget(key)
        self.sent = [item for item in self.sent if item[0] != key]
        self.last.pop(key, None)

    @rule()
    def restart(self) -> None:
        # As after a kill: nothing is closed in order.
        self.spool = Spool(self.path, 1 << 20)

    @invariant()
    def holds_what_was_not_acknowledged_in_order(self) -> None:
        if not hasattr(self, "spool"):
            return
        found = [
            (TaskKey(task_id=item.task_id, attempt=item.attempt), item.seq)
            for item in waiting(self.spool)
        ]
        assert found == self.sent
        assert (self.spool.size() > 0) == bool(self.sent)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.spool.close()
            self.folder.cleanup()


TestSpoolMachine = SpoolMachine.TestCase
TestSpoolMachine.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
