"""The script run for real: from an empty home with a bare PATH to an agent that is at work."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.appliance import Appliance
from tests.install.conftest import Machine

OLD = "#!/bin/sh\necho an older one\n"


@pytest.fixture
def installed(machine: Machine, python: str, script: str) -> Iterator[Machine]:
    done = machine.install(script, "--runtime", "existing", PARSYN_PYTHON=python)
    assert done.returncode == 0, done.stderr
    yield machine
    if Path(machine.parsyn).exists():
        machine.run(machine.parsyn, "stop")


def master_key(hub: Appliance, **body: Any) -> str:
    client = hub.client()
    made = client.call("POST", "/api/v1/master-keys", {"name": "lab", **body})
    return str(made["key"])


def worker_named(hub: Appliance, name: str) -> dict[str, Any]:
    client = hub.client()
    rows: list[dict[str, Any]] = client.call("GET", "/api/v1/workers")["items"]
    return next(row for row in rows if row["name"] == name)


def test_from_nothing_to_an_agent_at_work(hub: Appliance, installed: Machine) -> None:
    assert installed.run(installed.parsyn, "--version").stdout.startswith("parsyn, version ")
    key = master_key(hub, auto_name_prefix="attic")
    init = (installed.parsyn, "init", "--key-stdin", "--non-interactive")
    done = installed.run(*init, "--device", "cpu", stdin=f"{key}\n")
    assert done.returncode == 0, done.stderr
    again = installed.run(*init, stdin=f"{key}\n")
    assert again.returncode == 1
    assert "Use --force to replace it" in again.stderr
    assert installed.run(*init, "--force", "--device", "cpu", stdin=f"{key}\n").returncode == 0

    started = installed.run(installed.parsyn, "start")
    assert started.returncode == 0, started.stderr
    status = json.loads(installed.run(installed.parsyn, "status", "--json").stdout)
    assert (status["phase"], status["name"]) == ("ready", "attic-1")
    worker = worker_named(hub, "attic-1")
    assert (worker["id"], worker["status"]) == (status["worker_id"], "idle")
    assert worker["hardware"]["torch"], "the runtime's own torch was found"
    environment = (installed.home / ".parsyn" / "worker" / ".env").read_text()
    assert "WORKER_API_KEY=wkr_" in environment
    assert key not in environment
    drain_here(hub, installed)
    a_second_one_with_its_key(hub, installed)
    removed_and_told(hub, installed, status["worker_id"])
    assert "The agent has stopped." in installed.run(installed.parsyn, "stop").stdout
    removed = installed.run(installed.parsyn, "uninstall", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert [path for path in installed.home.rglob("*") if not path.is_dir()] == []


def drain_here(hub: Appliance, machine: Machine) -> None:
    """The machine's owner drains it, the hub knows, and takes it back."""
    done = machine.run(machine.parsyn, "drain", "--wait")
    assert done.returncode == 0, done.stderr
    assert json.loads(machine.run(machine.parsyn, "status", "--json").stdout)["phase"] == "draining"
    eventually_is(hub, "attic-1", "draining")
    assert machine.run(machine.parsyn, "drain", "--off").returncode == 0
    eventually_is(hub, "attic-1", "idle")


def a_second_one_with_its_key(hub: Appliance, machine: Machine) -> None:
    """It is refused, the first one named; the first one works on."""
    first, second = machine.home / ".parsyn" / "worker", machine.home / "second"
    lines = (first / ".env").read_text().splitlines()
    key = next(line.partition("=")[2] for line in lines if line.startswith("WORKER_API_KEY"))
    where = ("--dir", str(second))
    init = (machine.parsyn, "init", "--key-stdin", "--non-interactive", "--device", "cpu", *where)
    assert machine.run(*init, stdin=key).returncode == 0
    started = machine.run(machine.parsyn, "start", *where)
    assert "It is not connected yet: Another agent is connected with this key." in started.stderr
    assert "attic-1 is connected already" in started.stderr
    assert "attic-1 is connected already" in machine.run(machine.parsyn, "logs", *where).stdout
    assert machine.run(machine.parsyn, "stop", *where).returncode == 0
    assert worker_named(hub, "attic-1")["status"] == "idle"
    shutil.rmtree(second)


def removed_and_told(hub: Appliance, machine: Machine, worker_id: int) -> None:
    """Within five seconds the agent knows, and says it in its status, its log and to `doctor`."""
    began = time.monotonic()
    hub.client().call("DELETE", f"/api/v1/workers/{worker_id}")
    while (status := status_of(machine))["phase"] != "refused":
        assert time.monotonic() - began < 5, status
    said = "attic-1 was removed."
    assert said in status["error"]
    assert said in machine.run(machine.parsyn, "logs").stdout
    examined = json.loads(machine.run(machine.parsyn, "doctor", "--json").stdout)
    rows = {row["title"]: row for row in examined}
    assert rows["WebSocket"]["level"] == rows["Agent"]["level"] == "error"
    assert said in rows["WebSocket"]["found"]


def status_of(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(machine.run(machine.parsyn, "status", "--json").stdout)
    return found


def eventually_is(hub: Appliance, name: str, status: str) -> None:
    deadline = time.monotonic() + 10
    while worker_named(hub, name)["status"] != status:
        assert time.monotonic() < deadline, f"{name} is never {status}"
        time.sleep(0.1)


def test_running_it_again_changes_nothing_and_repairs_what_is_broken(
    installed: Machine, script: str, python: str
) -> None:
    pyz = installed.prefix / "lib" / "parsyn" / "parsyn.pyz"
    before = pyz.stat().st_mtime_ns
    options = ("--runtime", "existing", "--python", python)
    again = installed.install(script, *options)
    assert again.returncode == 0, again.stderr
    assert f"The command is up to date: {pyz}" in again.stdout
    assert pyz.stat().st_mtime_ns == before

    content = pyz.read_bytes()
    pyz.write_bytes(content[: len(content) // 2])
    Path(installed.parsyn).write_text(OLD)
    assert installed.install(script, *options).returncode == 0
    assert pyz.read_bytes() == content
    assert Path(installed.parsyn).read_text() != OLD


def test_uninstall_asks_and_says_what_it_would_remove(installed: Machine) -> None:
    unasked = installed.run(installed.parsyn, "uninstall")
    assert unasked.returncode == 2
    assert "say --yes" in unasked.stderr
    said = installed.run(installed.parsyn, "uninstall", "--dry-run").stdout
    for path in (installed.parsyn, installed.prefix / "lib" / "parsyn"):
        assert str(path) in said.splitlines()
    assert Path(installed.parsyn).exists()


def test_a_python_that_is_not_the_hubs(machine: Machine, script: str) -> None:
    """Its own code in an environment with packages from the index; any Python from 3.11 on."""
    other = other_python(machine)
    text = script if other else re.sub(r"^PYTHON=.*", "PYTHON=3.99", script, flags=re.MULTILINE)
    options = ("--runtime", "none", "--python", other or "/usr/bin/python3")
    done = machine.install(text, *options)
    assert done.returncode == 0, done.stderr
    assert "packages come from the package index" in done.stdout
    shown = machine.run(machine.parsyn, "--version")
    assert shown.stdout.startswith("parsyn, version "), shown.stderr
    examined = machine.run(machine.parsyn, "doctor", "--json")
    rows = {row["title"]: row for row in json.loads(examined.stdout)}
    assert rows["Plugins"]["level"] == "ok"
    again = machine.install(text, *options)
    assert "Its packages are up to date." in again.stdout
    assert machine.run(machine.parsyn, "uninstall", "--yes").returncode == 0
    assert not (machine.prefix / "lib" / "parsyn").exists()


def other_python(machine: Machine) -> str | None:
    """A Python of this machine, from 3.11 on, that is not the tests' version."""
    own = "python{}.{}".format(*sys.version_info[:2])
    for name in {"python3.11", "python3.12", "python3.13"} - {own}:
        path = shutil.which(name)
        if path and machine.run("sh", "-c", f"'{path}' -V").returncode == 0:
            return path
    return None


def test_only_the_command(machine: Machine, script: str) -> None:
    done = machine.install(script, "--runtime", "none")
    assert done.returncode == 0, done.stderr
    shown = machine.run(machine.parsyn, "runtime", "show")
    assert shown.stdout.startswith("this Python, ")


def test_a_python_without_what_is_needed_is_named(machine: Machine, script: str) -> None:
    done = machine.install(script, "--runtime", "existing", "--python", "/usr/bin/python3")
    assert done.returncode == 1
    assert "/usr/bin/python3 lacks" in done.stderr
    assert "torch" in done.stderr
    assert "-m pip install" in done.stderr
