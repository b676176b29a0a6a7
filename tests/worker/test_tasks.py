"""A task from its offer to its last word."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsyn.wire.refs import CheckpointRef
from parsyn.wire.worker import (
    Accepted,
    Cancel,
    Checkpoint,
    Drain,
    Log,
    Metric,
    Refused,
    Result,
    State,
)
from parsyn_worker.config import AgentConfig
from tests.worker.conftest import Started, at_rest, offer
from tests.worker.fake_hub import FakeHub


async def test_offer_to_result(hub: FakeHub, start_agent: Started, config: AgentConfig) -> None:
    agent = await start_agent()
    await hub.send(offer(hub, steps=4, checkpoint_every=2))
    await hub.wait_for(Accepted)
    result = await hub.wait_for(Result)
    assert result.outcome == "completed"
    assert result.manifest is not None
    assert result.manifest.facts == {"steps": 4}
    assert {file.path for file in result.manifest.files} == {"weights.bin", "config.json"}
    for file in result.manifest.files:
        assert len(hub.objects.data[file.key]) == file.size

    messages = hub.messages(7)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    assert messages[-1] == result
    points = [point for metric in hub.of(Metric) for point in metric.points]
    losses = {p.step: p.values["loss"] for p in points if "loss" in p.values}
    assert losses == {1: 1.0, 2: 0.5, 3: 1 / 3, 4: 0.25}
    checkpoints = hub.of(Checkpoint)
    assert [checkpoint.step for checkpoint in checkpoints] == [2, 4]
    assert {file.path for file in checkpoints[0].files} == {"step.txt", "adapter.bin"}
    assert hub.objects.data["tasks/7/1/checkpoints/4/step.txt"] == b"4"
    assert all(checkpoint.seq < result.seq for checkpoint in checkpoints)
    for checkpoint in checkpoints:
        told = {p.step for m in hub.of(Metric) if m.seq < checkpoint.seq for p in m.points}
        assert set(range(1, checkpoint.step + 1)) <= told, "whoever resumes here repeats no step"
    text = "\n".join(line.text for log in hub.of(Log) for line in log.lines)
    assert "3 rows of rows for Tiny" in text
    assert "said on stdout" in text
    assert hub.of(State)[-1].percent == 99.0
    await at_rest(agent)
    assert not list((config.cache_dir / "state" / "cpu" / "tasks").iterdir())


@pytest.mark.parametrize(
    ("ends", "reason", "words"),
    [
        ("killed", "out_of_memory", "memory ran out"),
        ("exits", "internal", "status 3"),
        ("raises", "internal", "nobody foresaw"),
        ("nan", "diverged", "`loss` became nan at step 2"),
        ("bad_data", "bad_data", "Row 3 has no answer."),
    ],
)
async def test_bad_ends_have_a_reason(
    hub: FakeHub, start_agent: Started, ends: str, reason: str, words: str
) -> None:
    await start_agent()
    await hub.send(offer(hub, steps=2, ends=ends))
    result = await hub.wait_for(Result)
    assert result.outcome == "failed"
    assert result.failure is not None
    assert result.failure.reason == reason
    assert words in result.failure.message
    if ends == "exits":
        assert result.failure.line == "the last line that it said"
    if ends == "raises":
        assert result.failure.line == "RuntimeError: it broke in the middle"
        text = "\n".join(line.text for log in hub.of(Log) for line in log.lines)
        assert "Traceback" in text


async def test_bad_parameters_and_unknown_trainers_are_the_users(
    hub: FakeHub, start_agent: Started
) -> None:
    await start_agent()
    await hub.send(offer(hub, task_id=1, stepz=2))
    result = await hub.wait_for(Result)
    assert result.failure is not None
    assert result.failure.reason == "user_error"
    assert "Did you mean `steps`?" in result.failure.message


@pytest.mark.parametrize("stubborn", [False, True])
async def test_cancel(hub: FakeHub, start_agent: Started, tmp_path: Path, stubborn: bool) -> None:
    agent = await start_agent()
    gate = str(tmp_path / "never")
    await hub.send(offer(hub, gate=gate, ignores_cancel=stubborn))
    await hub.wait_for(Metric)
    await hub.send(Cancel(task_id=7, attempt=1))
    result = await hub.wait_for(Result)
    assert result.outcome == "cancelled"
    assert agent.roster.working() is None


async def test_a_busy_or_draining_agent_refuses(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, gate=str(gate)))
    await hub.wait_for(Accepted)
    await hub.send(offer(hub, task_id=8))
    refused = await hub.wait_for(Refused)
    assert (refused.task_id, refused.reason) == (8, "This agent is busy with task 7.")
    await hub.send(offer(hub, gate=str(gate)))
    await hub.until(lambda: len(hub.of(Accepted)) == 2, "the same offer was not accepted again")
    await hub.send(Drain())
    gate.touch()
    assert (await hub.wait_for(Result)).outcome == "completed"
    await hub.send(offer(hub, task_id=9))
    refused = await hub.wait_for(Refused, lambda message: message.task_id == 9)
    assert "draining" in refused.reason


async def test_the_next_attempt_waits_for_the_one_that_stops(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    await start_agent()
    await hub.send(offer(hub, gate=str(tmp_path / "never")))
    await hub.wait_for(Metric)
    await hub.send(offer(hub, attempt=2, steps=1))
    result = await hub.wait_for(Result)
    assert (result.attempt, result.outcome) == (2, "completed")
    assert not hub.of(Refused)


async def test_a_stale_attempt_stops_without_a_word(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    agent = await start_agent()
    await hub.send(offer(hub, gate=str(tmp_path / "never")))
    await hub.wait_for(Metric)
    await hub.send(Cancel(task_id=7, attempt=1, reason="stale"))
    await at_rest(agent)
    await hub.send(offer(hub, task_id=8, steps=1))
    await hub.wait_for(Result)
    assert [result.task_id for result in hub.of(Result)] == [8]


async def test_the_storage_fences_a_stale_attempt(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    agent = await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, steps=3, checkpoint_every=1, gate=str(gate), gate_at=3))
    await hub.wait_for(Checkpoint)
    hub.objects.stale.add(7)
    gate.touch()
    await at_rest(agent)
    assert not hub.of(Result)


async def test_resume_from_a_checkpoint(hub: FakeHub, start_agent: Started) -> None:
    await start_agent()
    step = hub.put_object("tasks/7/1/checkpoints/2/step.txt", b"2")
    message = offer(hub, attempt=2, steps=4)
    spec = message.spec.model_copy(
        update={"resume": CheckpointRef(step=2, attempt=1, files=(step,))}
    )
    await hub.send(message.model_copy(update={"spec": spec}))
    assert (await hub.wait_for(Result)).outcome == "completed"
    points = [point for metric in hub.of(Metric) for point in metric.points]
    assert sorted({point.step for point in points if "loss" in point.values}) == [3, 4]
