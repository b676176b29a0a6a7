"""An agent whose clock is an hour off: it connects, works, and says so."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsyn.wire.worker import Heartbeat, Metric, Result
from parsyn_worker import main as agent
from tests.worker.conftest import offer
from tests.worker.fake_hub import FakeHub

HOUR = 3600
SHIFTED = """
import time

right = time.time
time.time = lambda: right() + {off}
"""


@pytest.fixture
def folder(
    worker_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    for name in ("PLATFORM_URL", "WORKER_API_KEY"):
        monkeypatch.delenv(name)
    yield tmp_path / "agent"
    agent.stop(tmp_path / "agent")


@pytest.mark.parametrize("off", [HOUR, -HOUR])
async def test_a_job_on_a_machine_whose_clock_is_an_hour_off(
    hub: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: int
) -> None:
    """The agent and every child of it, with a clock of their own."""
    site = tmp_path / "clock"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SHIFTED.format(off=off))
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{os.environ['PYTHONPATH']}")
    monkeypatch.setenv("HEARTBEAT_INTERVAL", "1")
    agent.init_worker(folder, url=hub.url, key="enroll_good", device="cpu")
    await asyncio.to_thread(agent.start_detached, folder)
    await hub.wait_for(Heartbeat)
    await hub.send(offer(hub))
    result = await hub.wait_for(Result)
    assert result.outcome == "completed"
    assert [message for message in hub.messages(7) if isinstance(message, Metric)]
    await hub.wait_for(Heartbeat, after=len(hub.received))
    await asyncio.to_thread(agent.stop, folder)
    told = [line for line in agent.follow_logs(folder, follow=False) if "clock is" in line]
    assert len(told) == 1
    assert ("ahead of" if off > 0 else "behind") in told[0]
    assert hub.connections == 1
