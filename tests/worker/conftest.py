"""An agent in this process or in one of its own, and the hub it speaks to."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from parsyn.wire.refs import DatasetRef, ModelRef
from parsyn.wire.states import FileFormat, SchemaKind
from parsyn.wire.tasks import TrainSpec
from parsyn.wire.worker import Hello, Offer
from parsyn_worker import transfer
from parsyn_worker.agent import Agent
from parsyn_worker.config import AgentConfig, load_config
from tests.worker.fake_hub import PATIENCE, FakeHub

Started = Callable[..., Awaitable[Agent]]


@pytest_asyncio.fixture
async def hub() -> AsyncIterator[FakeHub]:
    hub = FakeHub()
    await hub.start()
    yield hub
    await hub.vanish()


@pytest.fixture(scope="session")
def tiny_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is a distribution with the entry point of the tiny trainer."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(Path(__file__).with_name("tiny_plugin.py"), folder / "tiny_plugin.py")
    info = folder / "tiny_plugin-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-plugin\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[parsyn]\ntiny = tiny_plugin\n")
    return folder


@pytest.fixture(scope="session")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models, adapters and answers: see `raw_answers`. Made in a child: torch stays there."""
    folder = tmp_path_factory.mktemp("raw")
    command = [sys.executable, "-m", "tests.worker.raw_answers", str(folder)]
    # Two threads for such a model wait more for one another than they work.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2], env=env)
    return folder


@pytest.fixture
def worker_environment(
    hub: FakeHub, tmp_path: Path, tiny_plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The variables of an agent of this test; also set in this process, for its children."""
    values = {
        "PLATFORM_URL": hub.url,
        "WORKER_API_KEY": "wkr_good",
        "GPU_DEVICE": "cpu",
        "CACHE_DIR": str(tmp_path / "cache"),
        "RECONNECT_DELAY": "0.1",
        "CANCEL_GRACE_SECONDS": "1",
        "BENCHMARK": "false",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(tiny_plugin), os.getenv("PYTHONPATH")])),
        "OMP_NUM_THREADS": "1",
        "PARSYN_WORKER_DIR": str(tmp_path / "agent"),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    _let_torch_be_known(tmp_path / "cache")
    return values


def _let_torch_be_known(cache: Path) -> None:
    """As if it had been asked today: that takes seconds, and one test of its own."""
    facts = {"torch": "2", "device_ok": True}
    kept = {"version": metadata.version("torch"), "at": time.time(), "facts": facts}
    (cache / "state").mkdir(parents=True)
    (cache / "state" / "torch-cpu.json").write_text(json.dumps(kept))


@pytest.fixture
def config(worker_environment: dict[str, str], tmp_path: Path) -> AgentConfig:
    return load_config(tmp_path / "agent")


@pytest_asyncio.fixture
async def start_agent(
    hub: FakeHub, config: AgentConfig, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Started]:
    """Start an agent in this process and wait for its hello."""
    monkeypatch.setattr(transfer, "FIRST_WAIT", 0.01)
    async with AsyncExitStack() as stack:

        async def start(settings: AgentConfig = config) -> Agent:
            before = len(hub.received)
            agent = Agent(settings)
            running = asyncio.create_task(agent.run())

            async def end() -> None:
                agent.stop()
                await running

            stack.push_async_callback(end)
            await hub.wait_for(Hello, after=before)
            return agent

        yield start


def offer(hub: FakeHub, task_id: int = 7, attempt: int = 1, **params: Any) -> Offer:
    """A training of the tiny trainer, its inputs in the hub's storage."""
    weights = hub.put_object("models/1/config.json", b'{"architectures":["Tiny"]}')
    rows = hub.put_object("datasets/1/rows.txt", b"one\ntwo\nthree\n")
    spec = TrainSpec(
        trainer="tiny",
        params=params,
        model=ModelRef(id=1, name="Tiny", slug="tiny", files=(weights,)),
        dataset=DatasetRef(
            id=1,
            name="rows",
            file=rows,
            file_format=FileFormat.TEXT,
            schema_kind=SchemaKind.TEXT,
        ),
    )
    return Offer(task_id=task_id, attempt=attempt, job_id=70, name="a training", spec=spec)


async def at_rest(agent: Agent) -> None:
    """Until nothing of any attempt is left on the agent."""
    await eventually(lambda: not agent.roster.running(), "the agent still owes an answer")


async def eventually(holds: Callable[[], bool], otherwise: str) -> None:
    """Look until it holds: for what no message tells."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, otherwise
        await asyncio.sleep(0.01)
