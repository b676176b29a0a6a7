"""`parsyn serve` as a process: its first run, and one line for everything that is wrong."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.appliance import Appliance

COMMAND = [sys.executable, "-m", "parsyn.cli.main"]


def run(*arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
        check=False,
    )


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Appliance]:
    appliance = Appliance(tmp_path / "data")
    appliance.start()
    yield appliance
    appliance.stop()


def test_a_first_run_says_where_it_is_and_how_to_get_in(hub: Appliance) -> None:
    assert re.search(r"Address\s+http://127\.0\.0\.1:\d+", hub.greeting)
    assert str(hub.data) in hub.greeting
    link = re.search(r"Set-up link\s+\S+/setup\?token=(\S+)", hub.greeting)
    assert link is not None
    body = {
        "token": link[1],
        "email": "a@example.com",
        "name": "A",
        "password": "long enough",
    }
    answer = httpx.post(f"{hub.url}/api/v1/setup", json=body)
    assert answer.status_code == 201
    assert answer.json()["user"]["role"] == "owner"
    again = httpx.post(f"{hub.url}/api/v1/setup", json=body)
    assert again.status_code == 409
    assert oct(hub.data.stat().st_mode & 0o777) == "0o700"
    assert oct((hub.data / "secret.key").stat().st_mode & 0o777) == "0o600"
    health = httpx.get(f"{hub.url}/health").json()
    assert health["status"] == "ok"
    assert {health["database"], health["redis"], health["storage"]} == {"ok"}


def test_a_second_hub_on_the_same_data_is_refused(hub: Appliance) -> None:
    second = run("serve", "--data", str(hub.data), "--port", "0")
    assert second.returncode == 1
    assert "A hub already runs on" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1


def test_children_end_with_the_hub_even_when_it_is_killed(hub: Appliance) -> None:
    import psutil

    children = psutil.Process(hub.process.pid).children(recursive=True)
    assert any("valkey" in child.name() for child in children)
    hub.process.send_signal(signal.SIGKILL)
    hub.process.wait()
    _, alive = psutil.wait_procs(children, timeout=15)
    assert alive == []


def test_a_used_data_directory_serves_again_and_shows_no_set_up_link(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = run(
        "admin", "create", "--email", "O@Example.com", "--password-stdin", "--data", str(data),
        stdin="long enough\n",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "owner" in made.stdout
    for _ in range(2):
        appliance = Appliance(data)
        appliance.start()
        try:
            assert "Set-up link" not in appliance.greeting
            appliance.client("o@example.com", "long enough").call("GET", "/api/v1/me")
        finally:
            assert appliance.stop() == 0


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("serve", "--data", str(tmp_path / "d"), "--port", str(port))
    assert result.returncode == 2
    assert f"127.0.0.1:{port} cannot be bound" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_file_as_data_directory_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("serve", "--data", str(tmp_path / "file"))
    assert result.returncode == 2
    assert "is a file" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_unwritable_folder_is_one_line() -> None:
    result = run("serve", "--data", "/proc/parsyn")
    assert result.returncode == 2
    assert "/proc/parsyn cannot be made" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_newer_schema_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run("migrate", "--data", str(data)).returncode == 0
    connection = sqlite3.connect(data / "parsyn.db")
    connection.execute(
        "INSERT INTO schema_migration (name, applied) VALUES ('9999_future', '2030-01-01')"
    )
    connection.commit()
    connection.close()
    result = run("serve", "--data", str(data), "--port", "0")
    assert result.returncode == 2
    assert "made by a newer Parsyn (it has 9999_future)" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("PARSYN_HUB_PORT", "many", "PARSYN_HUB_PORT must be a whole number"),
        ("PARSYN_HUB_DATABASE", "mysql://x", "hub.database must be"),
        ("PARSYN_HUB_DATABASE", "postgresql://127.0.0.1:1/x", "The database cannot be reached"),
        ("PARSYN_STORAGE_USE", "tape", "storage.use names 'tape'"),
    ],
)
def test_a_bad_setting_is_one_line(tmp_path: Path, variable: str, value: str, says: str) -> None:
    result = run("serve", "--data", str(tmp_path / "d"), "--port", "0", **{variable: value})
    assert result.returncode in (1, 2)
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--nonsense"], ["serve", "--port", "x"], ["nonsense"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert run(*arguments).returncode == 2


def test_plugins_are_listed_and_a_disabled_one_is_not_imported(tmp_path: Path) -> None:
    listed = run("plugins", "--data", str(tmp_path))
    for name in ("storage_local", "trainer_sft", "evaluator_perplexity", "exporter_gguf"):
        assert name in listed.stdout
    code = (
        "import sys; from parsyn.plugin.manager import Plugins;"
        "p = Plugins(['trainer_sft']);"
        "assert 'parsyn_plugins.trainer_sft' not in sys.modules;"
        "assert 'torch' not in sys.modules;"
        "print([i.state for i in p.infos() if i.name == 'trainer_sft'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "['disabled']"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from parsyn.cli.main import cli; cli.main(['--help'], standalone_mode=False);"
        "heavy = {'torch', 'quart', 'peewee', 'pydantic', 'redis'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
