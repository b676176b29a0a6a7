"""Coming to the hub, staying, being turned away and coming back."""

from __future__ import annotations

import asyncio
import dataclasses
import stat
from pathlib import Path

import pytest

from parsyn.wire.worker import CloseCode, Heartbeat, Hello, SystemMetrics
from parsyn_worker.config import AgentConfig, load_config
from parsyn_worker.standing import read_standing
from tests.worker.conftest import Started, eventually
from tests.worker.fake_hub import FakeHub


async def test_says_hello_beats_and_measures(hub: FakeHub, start_agent: Started) -> None:
    await start_agent()
    hello = hub.of(Hello)[0]
    assert hello.device == "cpu"
    assert hello.hardware.cores > 0
    assert hello.running == ()
    await hub.wait_for(Heartbeat)
    metrics = await hub.wait_for(SystemMetrics)
    assert metrics.ram_total > metrics.ram_used > 0


async def test_enrolment_writes_the_own_key(
    hub: FakeHub,
    start_agent: Started,
    config: AgentConfig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "agent"
    enrolling = dataclasses.replace(config, api_key=None, enrollment_key="enroll_good")
    await start_agent(enrolling)
    await hub.wait_for(SystemMetrics)
    path = folder / ".env"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.delenv("WORKER_API_KEY")
    written = load_config(folder)
    assert written.api_key in hub.keys
    assert not written.enrolling


async def test_comes_back_with_its_own_key(
    hub: FakeHub, start_agent: Started, config: AgentConfig
) -> None:
    enrolling = dataclasses.replace(config, api_key=None, enrollment_key="enroll_good")
    await start_agent(enrolling)
    await hub.wait_for(SystemMetrics)
    hub.enrollment_keys.clear()
    await hub.vanish()
    await hub.start()
    await hub.until(lambda: len(hub.of(Hello)) == 2, "it did not come back")
    assert len(hub.keys) == 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (CloseCode.REVOKED, "revoked"),
        (CloseCode.BAD_CREDENTIAL, "does not know this key"),
        (CloseCode.KEY_EXHAUSTED, "used up"),
        (CloseCode.PROTOCOL_TOO_OLD, "Update the agent"),
        (CloseCode.PROTOCOL_TOO_NEW, "Update the hub"),
    ],
)
async def test_a_refused_agent_says_why_and_does_not_hammer(
    hub: FakeHub,
    start_agent: Started,
    config: AgentConfig,
    caplog: pytest.LogCaptureFixture,
    code: CloseCode,
    words: str,
) -> None:
    agent = await start_agent()
    hub.refuse_with = (code, "the hub's own words")
    assert hub.socket is not None
    await hub.socket.close(code, "the hub's own words")

    def refused() -> bool:
        standing = read_standing(config.dir)
        return standing is not None and standing.phase == "refused"

    await eventually(refused, "it does not know that it was refused")
    assert words in (agent.standing.now.error or "")
    assert "the hub's own words" in caplog.text
    # With the delays of a lost connection it would have asked again by now.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(hub.until(lambda: hub.connections > 1, ""), 1.0)


async def test_a_second_agent_with_the_key_is_told_so_and_tries_again(
    hub: FakeHub, start_agent: Started, caplog: pytest.LogCaptureFixture
) -> None:
    await start_agent()
    assert hub.socket is not None
    await hub.socket.close(CloseCode.ALREADY_CONNECTED, "worker-1 is connected")
    await hub.until(lambda: len(hub.of(Hello)) == 2, "it did not come back")
    assert "Another agent is connected with this key" in caplog.text
