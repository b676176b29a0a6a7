"""An agent in a container: started, seen, drained, stopped, removed.

No engine runs in tests. One stands in that does what Docker's client does: it is a process of its
own beside the container's, passes signals on, and gives the container the variables it is told.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from parsyn import __version__
from parsyn.wire.worker import Heartbeat, Hello
from parsyn_worker import main as agent
from parsyn_worker import process, runtime
from parsyn_worker.runtime import Runtime
from tests.meta.tree import ROOT
from tests.worker.fake_hub import FakeHub

CODE = os.pathsep.join(str(ROOT / name) for name in ("", "worker", "plugins"))
CLIENT = f"""#!{sys.executable}
import os, signal, subprocess, sys

arguments = sys.argv[1:]
with open(os.path.dirname(__file__) + "/asked", "a") as file:
    file.write(" ".join(arguments) + "\\n")
if arguments[0] != "run":
    sys.exit(0)
end = arguments.index("--entrypoint")
env = {{"PATH": os.environ["PATH"], "PYTHONPATH": {CODE!r}}}
for flag, value in zip(arguments[:end], arguments[1:end]):
    if flag == "--env":
        name, given, text = value.partition("=")
        env[name] = text if given else os.environ[name]
child = subprocess.Popen([sys.executable, *arguments[end + 4:]], env=env)
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, _: child.send_signal(number))
while True:
    try:
        sys.exit(child.wait())
    except InterruptedError:
        pass
"""


@pytest.fixture
def folder(
    worker_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    """An agent's folder on a machine whose runtime is a container."""
    for name in ("PLATFORM_URL", "WORKER_API_KEY"):
        monkeypatch.delenv(name)
    client = tmp_path / "docker"
    client.write_text(CLIENT)
    client.chmod(0o755)
    cache = Path(worker_environment["CACHE_DIR"])
    made = Runtime("container", version=__version__, engine=str(client), image="parsyn-worker:x")
    runtime.keep(cache, made)
    folder = tmp_path / "agent"
    yield folder
    agent.stop(folder)


async def test_an_agent_in_a_container_is_led_by_its_engines_client(
    hub: FakeHub, folder: Path
) -> None:
    agent.init_worker(folder, url=hub.url, key="enroll_good", device="cpu")
    pid = await asyncio.to_thread(agent.start_detached, folder)
    status = agent.status(folder)
    assert (status["running"], status["phase"], status["pid"]) == (True, "ready", pid)
    client = psutil.Process(pid)
    assert "docker" in " ".join(client.cmdline())
    (inside,) = client.children()
    assert inside.pid != pid
    assert len(hub.of(Hello)) == 1
    await asyncio.to_thread(agent.drain, folder, on=True, wait=True)
    await hub.wait_for(Heartbeat, lambda beat: beat.draining is True)
    assert await asyncio.to_thread(agent.stop, folder)
    assert await asyncio.to_thread(psutil.wait_procs, [inside], 10) == ([inside], [])
    assert agent.status(folder)["running"] is False
    (started,) = [line for line in asked(folder) if line.startswith("run ")]
    assert "--gpus" not in started
    assert "enroll_good" not in started


async def test_a_container_that_does_not_stop_is_removed(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.init_worker(folder, url=hub.url, key="enroll_good", device="cpu")
    pid = await asyncio.to_thread(agent.start_detached, folder)
    (inside,) = psutil.Process(pid).children()
    inside.suspend()
    await asyncio.to_thread(process.stop, folder, 0.3)
    assert asked(folder)[-1] == f"rm --force {runtime.container_name(folder)}"
    inside.kill()


def asked(folder: Path) -> list[str]:
    return (folder.parent / "asked").read_text().splitlines()
