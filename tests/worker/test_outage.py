"""What must survive: a hub that comes and goes, a killed agent, a result on its way."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from parsyn.wire.worker import (
    Cancel,
    Checkpoint,
    Drain,
    Hello,
    Metric,
    Refused,
    Result,
    Spooled,
    TaskKey,
    WantTicket,
)
from parsyn_worker import session
from parsyn_worker.agent import Agent
from parsyn_worker.config import AgentConfig
from tests.worker.conftest import Started, at_rest, eventually, offer
from tests.worker.fake_hub import FakeHub


def steps_of(hub: FakeHub, task_id: int = 7) -> list[int]:
    """The steps whose loss the hub has, in the order of their sequence numbers."""
    messages = [message for message in hub.messages(task_id) if isinstance(message, Metric)]
    return [p.step for m in messages for p in m.points if "loss" in p.values]


async def test_the_hub_vanishes_and_comes_back(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, steps=6, checkpoint_every=2, gate=str(gate), gate_at=3))
    await hub.wait_for(Checkpoint)
    await hub.vanish()
    gate.touch()
    await eventually(_ended, "the task did not go on without the hub")
    await hub.start()
    result = await hub.wait_for(Result)
    assert result.outcome == "completed"
    assert steps_of(hub) == [1, 2, 3, 4, 5, 6]
    assert [checkpoint.step for checkpoint in hub.of(Checkpoint)] == [2, 4, 6]
    messages = hub.messages(7)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    assert messages[-1] == result
    assert TaskKey(task_id=7, attempt=1) in hub.of(Hello)[-1].running


def _ended() -> bool:
    """No task's own process is left; the servers of other tests' fixtures are no tasks."""
    return not any(_lives(child) and _is_task(child) for child in psutil.Process().children())


def _is_task(process: psutil.Process) -> bool:
    try:
        return "parsyn_worker.task" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_what_was_not_acknowledged_is_sent_again(
    hub: FakeHub, start_agent: Started, config: AgentConfig
) -> None:
    agent = await start_agent()
    hub.acknowledges = False
    await hub.send(offer(hub, steps=2))
    await hub.wait_for(Result)
    await at_rest(agent)
    sent = len(hub.messages(7))
    hub.acknowledges = True
    await hub.vanish()
    await hub.start()
    await hub.until(lambda: len(hub.twice) == sent, "not everything was sent again")
    assert [m.seq for m in hub.twice] == list(range(1, sent + 1))
    await hub.vanish()
    await hub.start()
    await hub.until(lambda: len(hub.of(Hello)) == 3, "it did not come back")
    assert len(hub.twice) == sent


async def test_a_drain_is_over_unless_the_hub_says_it_again(
    hub: FakeHub, start_agent: Started
) -> None:
    """It may have been lifted while the agent was away."""
    await start_agent()
    await hub.send(Drain())
    await hub.send(offer(hub, steps=1))
    await hub.wait_for(Refused)
    await hub.vanish()
    await hub.start()
    await hub.until(lambda: len(hub.of(Hello)) == 2, "it did not come back")
    await hub.send(offer(hub, attempt=2, steps=1))
    assert (await hub.wait_for(Result)).outcome == "completed"


async def test_an_upload_outlives_errors_and_the_hub(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, gate=str(gate)))
    await hub.wait_for(Metric)
    hub.objects.fail_next = [503, 500, 403]
    gate.touch()
    await hub.wait_for(WantTicket, lambda want: want.op == "put")
    await hub.vanish()
    await hub.start()
    result = await hub.wait_for(Result)
    assert result.outcome == "completed"


async def test_a_refused_result_fails_with_the_hubs_words(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, gate=str(gate)))
    await hub.wait_for(Metric)
    hub.objects.ticket_error = "Your quota is used up."
    gate.touch()
    result = await hub.wait_for(Result)
    assert result.outcome == "failed"
    assert result.failure is not None
    assert "Your quota is used up." in (result.failure.line or "")


async def test_cancel_while_the_result_is_on_its_way(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, gate=str(gate)))
    await hub.wait_for(Metric)
    hub.objects.fail_next = [503] * 1000
    gate.touch()
    await hub.wait_for(WantTicket, lambda want: want.op == "put")
    await hub.send(Cancel(task_id=7, attempt=1))
    assert (await hub.wait_for(Result)).outcome == "cancelled"


async def test_an_agent_without_answers_stops_its_task(
    hub: FakeHub, start_agent: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WELCOME_SECONDS", 0.2)
    hub.welcome_values["self_fence_seconds"] = 0.5
    agent = await start_agent()
    await hub.send(offer(hub, gate=str(tmp_path / "never")))
    await hub.wait_for(Metric)
    hub.fall_silent()
    await eventually(lambda: agent.roster.working() is None, "it works on without a hub")
    hub.mute = False
    result = await hub.wait_for(Result)
    assert result.failure is not None
    assert result.failure.reason == "worker_lost"


async def test_a_hub_that_is_down_gives_no_task_away(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    hub.welcome_values["self_fence_seconds"] = 2.0
    agent = await start_agent()
    gate = tmp_path / "gate"
    await hub.send(offer(hub, gate=str(gate)))
    await hub.wait_for(Metric)
    await hub.vanish()
    with pytest.raises(TimeoutError):
        # Longer than the agent would wait for a hub that does not answer.
        await asyncio.wait_for(_stops(agent), 4)
    gate.touch()
    await hub.start()
    assert (await hub.wait_for(Result)).outcome == "completed"


async def _stops(agent: Agent) -> None:
    await eventually(lambda: agent.roster.working() is None, "it works")


async def test_a_task_that_takes_too_long(
    hub: FakeHub, start_agent: Started, config: AgentConfig, tmp_path: Path
) -> None:
    await start_agent(dataclasses.replace(config, training_timeout=1.0))
    await hub.send(offer(hub, gate=str(tmp_path / "never")))
    result = await hub.wait_for(Result)
    assert result.failure is not None
    assert result.failure.reason == "timeout"


async def test_a_stopped_agent_hands_its_task_back(
    hub: FakeHub, start_agent: Started, tmp_path: Path
) -> None:
    agent = await start_agent()
    await hub.send(offer(hub, gate=str(tmp_path / "never")))
    await hub.wait_for(Metric)
    agent.stop()
    result = await hub.wait_for(Result)
    assert result.failure is not None
    assert result.failure.reason == "preempted"


# --- killed ------------------------------------------------------------------------------------


class Process:
    """An agent in a process of its own, that may be killed."""

    def __init__(self) -> None:
        self.running: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "parsyn_worker.main", "start", env=dict(os.environ)
        )

    async def kill(self) -> None:
        if self.running and self.running.returncode is None:
            self.running.send_signal(signal.SIGKILL)
            await self.running.wait()


@pytest_asyncio.fixture
async def process(config: AgentConfig, hub: FakeHub) -> AsyncIterator[Process]:
    process = Process()
    await process.start()
    await hub.wait_for(Hello)
    yield process
    await process.kill()


async def test_killed_and_started_again(hub: FakeHub, process: Process, tmp_path: Path) -> None:
    hub.acknowledges = False
    await hub.send(offer(hub, steps=9, gate=str(tmp_path / "never"), gate_at=4))
    await hub.wait_for(Metric, lambda metric: any(p.step == 3 for p in metric.points))
    assert process.running is not None
    children = psutil.Process(process.running.pid).children(recursive=True)
    assert children
    await process.kill()
    await eventually(lambda: not any(map(_lives, children)), "the task outlived its agent")
    before: list[Spooled] = hub.messages(7)
    hub.acknowledges = True
    await process.start()
    result = await hub.wait_for(Result)
    assert result.failure is not None
    assert result.failure.reason == "worker_lost"
    assert result.seq > before[-1].seq
    assert {message.seq for message in hub.twice} == {message.seq for message in before}
    assert steps_of(hub) == [1, 2, 3]


async def test_a_result_on_its_way_survives_a_kill(
    hub: FakeHub, process: Process, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    await hub.send(offer(hub, steps=3, gate=str(gate)))
    await hub.wait_for(Metric)
    hub.objects.fail_next = [503] * 1000
    gate.touch()
    await hub.wait_for(WantTicket, lambda want: want.op == "put")
    await process.kill()
    hub.objects.fail_next = []
    await process.start()
    result = await hub.wait_for(Result)
    assert result.outcome == "completed"
    assert result.manifest is not None
    assert {file.path for file in result.manifest.files} == {"weights.bin", "config.json"}
    assert TaskKey(task_id=7, attempt=1) in hub.of(Hello)[-1].running
