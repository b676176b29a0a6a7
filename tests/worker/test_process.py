"""The agent as a process: set up, started, seen, drained, stopped."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.worker import CloseCode, Heartbeat
from parsyn_worker import doctor_machine
from parsyn_worker import main as agent
from parsyn_worker.config import read_env
from tests.worker.fake_hub import FakeHub


@pytest.fixture
def folder(
    worker_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    """An agent's folder without settings; the environment holds neither hub nor key."""
    for name in ("PLATFORM_URL", "WORKER_API_KEY"):
        monkeypatch.delenv(name)
    folder = tmp_path / "agent"
    yield folder
    agent.stop(folder)


def test_init_writes_what_a_start_needs(folder: Path) -> None:
    path = agent.init_worker(folder, url="hub.example", key="enroll_1", name="box", device="cpu")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_env(path) == {
        "PLATFORM_URL": "wss://hub.example/ws/worker",
        "WORKER_ENROLLMENT_KEY": "enroll_1",
        "WORKER_NAME": "box",
        "WORKER_TYPE": "both",
        "GPU_DEVICE": "cpu",
        "CACHE_DIR": os.environ["CACHE_DIR"],
    }
    with pytest.raises(ParsynError, match="--force"):
        agent.init_worker(folder, url="hub.example", key="enroll_2")
    agent.init_worker(folder, url="http://127.0.0.1", key="wkr_2", force=True)
    assert read_env(path)["WORKER_API_KEY"] == "wkr_2"
    assert "WORKER_ENROLLMENT_KEY" not in read_env(path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"url": "gopher://x"}, "The hub's address must begin with"),
        ({"key": "psn_1"}, "begins with enroll_"),
        ({"device": "tpu"}, "GPU_DEVICE must be"),
    ],
)
def test_init_refuses_what_cannot_work(folder: Path, values: dict[str, Any], words: str) -> None:
    with pytest.raises(ParsynError, match=words):
        agent.init_worker(folder, **{"url": "hub", "key": "enroll_1", **values})
    assert not (folder / ".env").exists()


async def test_start_status_logs_stop(hub: FakeHub, folder: Path) -> None:
    agent.init_worker(folder, url=hub.url, key="enroll_good", device="cpu")
    pid = await asyncio.to_thread(agent.start_detached, folder)
    found = agent.status(folder)
    assert (found["running"], found["pid"], found["phase"]) == (True, pid, "ready")
    assert found["worker_id"] == 2
    with pytest.raises(ParsynError) as caught:
        agent.start_detached(folder)
    assert caught.value.code is ErrorCode.CONFLICT
    with pytest.raises(ParsynError, match="runs already"):
        agent.run_foreground(folder)
    lines = list(agent.follow_logs(folder, follow=False))
    order = ["Using the enrolment key", "Connected", "Enrolled as", "benchmark", "Registered"]
    found_at = [next(i for i, line in enumerate(lines) if word in line) for word in order]
    assert found_at == sorted(found_at)
    assert lines[-1].endswith("Ready.")
    assert "enroll_good" not in "".join(lines)
    assert await asyncio.to_thread(agent.stop, folder)
    assert agent.status(folder)["running"] is False
    assert not agent.stop(folder)


async def test_drain_and_back(hub: FakeHub, folder: Path) -> None:
    agent.init_worker(folder, url=hub.url, key="enroll_good", device="cpu")
    with pytest.raises(ParsynError, match="No agent runs here"):
        agent.drain(folder, on=True, wait=False)
    await asyncio.to_thread(agent.start_detached, folder)
    await asyncio.to_thread(agent.drain, folder, on=True, wait=True)
    assert agent.status(folder)["phase"] == "draining"
    await hub.wait_for(Heartbeat, lambda beat: beat.draining is True)
    # It is said until the hub has answered, and not again.
    await hub.wait_for(Heartbeat, lambda beat: beat.draining is None, after=len(hub.received))
    await asyncio.to_thread(agent.drain, folder, on=False, wait=False)
    assert agent.status(folder)["phase"] == "ready"
    await hub.wait_for(Heartbeat, lambda beat: beat.draining is False)
    await asyncio.to_thread(agent.stop, folder)


async def test_a_refused_start_says_why(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_machine, "_trials", lambda _: ({}, ""))
    hub.refuse_with = (CloseCode.KEY_EXHAUSTED, "3 of 3 used")
    agent.init_worker(folder, url=hub.url, key="enroll_good", device="cpu")
    with pytest.raises(ParsynError, match=r"used up.*3 of 3 used"):
        await asyncio.to_thread(agent.start_detached, folder)
    assert agent.status(folder)["running"] is False
    findings = await asyncio.to_thread(agent.run_doctor, folder)
    socket = next(row for row in findings if row["title"] == "WebSocket")
    assert socket["level"] == "error"
    assert "3 of 3 used" in socket["found"]


def test_the_foreground_says_in_one_line_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main(["start", "--dir", str(folder)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("PLATFORM_URL is not set.")
    assert len(error.splitlines()) == 1
