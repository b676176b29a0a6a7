"""`parsyn doctor` on a hub's machine, with and without the hub; and how it knows what to check."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsyn import __version__, config
from parsyn.cli import hub_checks, hub_doctor, hub_parts
from parsyn.cli.hub_patient import HubPatient
from parsyn.plugin.check import Finding
from parsyn.services.context import open_context
from parsyn.store.migrate import bring_to, migrate
from parsyn_worker.runtime import Runtime, keep
from tests.appliance import Appliance

COMMAND = [sys.executable, "-m", "parsyn.cli.main"]
Rows = dict[str, dict[str, Any]]


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, **env}, check=False,
    )  # fmt: skip


def examine(data: Path, fix: bool = False, **env: str) -> Rows:
    return {row["title"]: row for row in hub_doctor.examine(data, None, fix)}


@pytest.fixture
def free_port(monkeypatch: pytest.MonkeyPatch) -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    monkeypatch.setenv("PARSYN_HUB_PORT", str(port))
    return port


@pytest.fixture
def data(tmp_path: Path, free_port: int) -> Path:
    """The data directory of a hub that has run."""
    folder = tmp_path / "data"
    context = open_context(config.load(data_dir=folder))
    migrate(context.database)
    context.close()
    return folder


def test_before_the_first_start(tmp_path: Path, free_port: int) -> None:
    rows = examine(tmp_path / "data")
    assert [row for row in rows.values() if row["level"] == "error"] == []
    assert rows["Data directory"]["level"] == "warn"
    assert not (tmp_path / "data").exists(), "it looks and changes nothing"
    fixed = examine(tmp_path / "data", fix=True)
    assert fixed["Data directory"]["fixed"] == f"made {tmp_path / 'data'}"
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_a_hub_that_rests(data: Path, free_port: int) -> None:
    rows = examine(data)
    assert [row for row in rows.values() if row["level"] == "error"] == []
    assert rows["Database"]["found"].endswith("whole")
    assert rows["Schema"]["found"] == "this version's"
    assert "no hub runs here" in rows["Port"]["found"]
    assert rows["Storage"]["found"] == "local takes files"


def test_rights_are_repaired(data: Path) -> None:
    data.chmod(0o755)
    (data / "secret.key").chmod(0o644)
    rows = examine(data)
    assert rows["Data directory"]["level"] == rows["Secret key"]["level"] == "error"
    rows = examine(data, fix=True)
    assert rows["Data directory"]["level"] == rows["Secret key"]["level"] == "ok"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "secret.key").stat().st_mode) == 0o600


def test_a_damaged_key_and_a_damaged_database(data: Path) -> None:
    (data / "secret.key").write_text("nonsense")
    database = data / "parsyn.db"
    content = database.read_bytes()
    database.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    for suffix in ("-wal", "-shm"):
        (data / f"parsyn.db{suffix}").unlink(missing_ok=True)
    rows = examine(data)
    assert "is damaged" in rows["Secret key"]["found"]
    assert rows["Database"]["level"] == "error"
    assert "parsyn restore" in rows["Database"]["advice"]
    assert rows["Port"]["level"] == "ok", "one that fails hides no other"


def test_a_schema_that_is_behind_is_brought_forward(data: Path) -> None:
    (data / "parsyn.db").unlink()
    context = open_context(config.load(data_dir=data))
    with context.database.transaction():
        bring_to(context.database, ["0001_first"])
    context.close()
    rows = examine(data)
    assert rows["Schema"]["level"] == "warn"
    assert "steps behind this version" in rows["Schema"]["found"]
    rows = examine(data, fix=True)
    assert rows["Schema"]["fixed"].startswith("applied 0002")
    assert rows["Schema"]["level"] == "ok"


def test_a_newer_schema_is_said(data: Path) -> None:
    with sqlite3.connect(data / "parsyn.db") as database:
        row = "INSERT INTO schema_migration (name, applied) VALUES ('9999_future', '2030-01-01')"
        database.execute(row)
    database.close()
    found = examine(data, fix=True)["Schema"]
    assert found["level"] == "error"
    assert "a newer Parsyn made it (it has 9999_future)" in found["found"]


def test_a_taken_port(data: Path, free_port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port))
        taken.listen()
        found = examine(data)["Port"]
    assert found["level"] == "error"
    assert "cannot be bound" in found["found"]


def test_what_a_dead_hub_left_behind(data: Path) -> None:
    (data / "valkey.url").write_text("unix:///tmp/gone/valkey.sock")
    assert "left of a hub that died" in examine(data)["Redis"]["found"]
    assert examine(data, fix=True)["Redis"]["level"] == "ok"
    assert not (data / "valkey.url").exists()


@pytest.mark.parametrize(
    ("variable", "value", "title", "words"),
    [
        ("PARSYN_HUB_PROT", "1", "Settings", "There is no setting PARSYN_HUB_PROT"),
        ("PARSYN_HUB_DATABASE", "postgresql://127.0.0.1:1/x", "Database", "cannot be reached"),
        ("PARSYN_HUB_REDIS", "redis://127.0.0.1:1", "Redis", "does not answer"),
        ("PARSYN_STORAGE_USE", "tape", "Storage", "storage.use names 'tape'"),
        ("PARSYN_HUB_URL", "parsyn.example", "Address", "hub.url is 'parsyn.example'"),
    ],
)
def test_a_bad_setting_is_found_where_it_matters(
    data: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, title: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    found = examine(data)[title]
    assert found["level"] == "error"
    assert words in found["found"]


def test_a_plugin_that_is_disabled_and_does_not_exist(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSYN_PLUGINS_DISABLED", "exporter_guff")
    found = examine(data)["Plugins"]
    assert "exporter_guff, which is not installed" in found["found"]


def test_little_room_and_a_clock_that_went_back(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_checks, "LITTLE_DISK", 1 << 60)
    assert examine(data)["Disk"]["level"] == "warn"
    monkeypatch.setattr(hub_parts, "_against_others", lambda _: -3600.0)
    found = examine(data)["Clock"]
    assert "3600 s behind" in found["found"]


def test_other_servers_clocks_are_asked(redis_url: str, data: Path) -> None:
    settings = config.load(data_dir=data, flags={"hub.redis": redis_url})
    patient = HubPatient(settings)
    off = hub_parts._against_others(patient)
    patient.close()
    assert off is not None
    assert abs(off) < 5


@pytest.mark.postgres
def test_a_hub_on_postgres_and_redis(
    tmp_path: Path, postgres_url: str, redis_url: str, free_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PARSYN_HUB_DATABASE", postgres_url)
    monkeypatch.setenv("PARSYN_HUB_REDIS", redis_url)
    rows = examine(tmp_path / "data")
    assert rows["Database"]["found"] == "PostgreSQL answers"
    assert rows["Schema"]["found"] == "this version's"
    assert rows["Redis"]["level"] == "ok"
    assert rows["Clock"]["found"] == "fits the servers it works with"


def test_a_broken_check_hides_no_other(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: HubPatient) -> Finding:
        raise RuntimeError("inside")

    checks = (hub_doctor.HubCheck("Broken", broken), *hub_doctor.CHECKS)
    monkeypatch.setattr(hub_doctor, "CHECKS", checks)
    rows = examine(data)
    assert "RuntimeError: inside" in rows["Broken"]["found"]
    assert rows["Disk"]["level"] == "ok"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Appliance]:
    appliance = Appliance(tmp_path / "hub")
    appliance.create_owner()
    appliance.start()
    yield appliance
    appliance.stop()


def once_at_work(hub: Appliance) -> Rows:
    """What doctor finds once the job process has come up, which takes longer than the hub."""
    deadline = time.monotonic() + 30
    while True:
        rows = examine(hub.data)
        at_work = rows["Job processes"]["found"] == "1 at work, 0 jobs wait"
        if at_work or time.monotonic() > deadline:
            return rows
        time.sleep(0.2)


def test_beside_a_hub_that_runs(hub: Appliance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARSYN_HUB_PORT", str(hub.port))
    rows = once_at_work(hub)
    assert [row for row in rows.values() if row["level"] != "ok"] == []
    assert f"the hub runs (process {hub.process.pid})" in rows["Port"]["found"]
    assert rows["Redis"]["found"].startswith("embedded Valkey ")
    assert rows["Job processes"]["found"] == "1 at work, 0 jobs wait"
    monkeypatch.setenv("PARSYN_HUB_PORT", str(hub.port + 1))
    assert "does not answer at" in examine(hub.data)["Port"]["found"]
    monkeypatch.setenv("PARSYN_HUB_URL", "http://127.0.0.1:9")
    assert "does not lead to the hub" in examine(hub.data)["Address"]["found"]


# --- which of the two it checks -----------------------------------------------------------------


def titles(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in result.stdout.splitlines() if line.startswith("The ")]


def test_it_says_what_it_checked(tmp_path: Path, free_port: int) -> None:
    home, none = tmp_path / "home", {"PLATFORM_URL": "", "PARSYN_DATA": "", "GPU_DEVICE": "cpu"}
    env = {**none, "HOME": str(home), "XDG_DATA_HOME": str(home / "share")}
    data, folder = home / "share" / "parsyn", home / ".parsyn" / "worker"
    # Torch takes its time, and no test here is about it.
    keep(home / ".cache" / "parsyn", Runtime("existing", "/bin/true", "", __version__))
    nothing = run("doctor", **env)
    assert nothing.returncode == 1
    assert titles(nothing) == [f"The agent in {folder}"]
    assert "FAIL  Configuration: PLATFORM_URL is not set." in nothing.stdout

    assert run("migrate", **env).returncode == 0
    (data / "secret.key").write_text("ab" * 32)
    (data / "secret.key").chmod(0o600)
    assert titles(run("doctor", **env)) == [f"The hub in {data}"]

    agent = ("doctor", "--dir", str(folder), "--json")
    rows = json.loads(run(*agent, **env).stdout)
    assert {row["of"] for row in rows} == {"agent"}
    folder.mkdir(parents=True)
    (folder / ".env").write_text("PLATFORM_URL=ws://127.0.0.1:1\nWORKER_API_KEY=wkr_1\n")
    both = titles(run("doctor", **env))
    assert both == [f"The hub in {data}", f"The agent in {folder}"]
    only_hub = run("doctor", "--data", str(data), "--json", **env)
    assert {row["of"] for row in json.loads(only_hub.stdout)} == {"hub"}
    assert only_hub.returncode == 0
