"""Commands as processes: what they print, and one line for what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parsyn import config
from parsyn.services.context import open_context
from parsyn.store.migrate import migrate
from parsyn.store.outbox import Outbox

COMMAND = [sys.executable, "-m", "parsyn.cli.main"]


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, **env}, check=False,
    )  # fmt: skip


def one_line(result: subprocess.CompletedProcess[str], code: int) -> str:
    assert result.returncode == code, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    return result.stderr


def test_jobs_does_what_is_queued_and_stops(tmp_path: Path, redis_url: str) -> None:
    data = tmp_path / "data"
    settings = config.load(data_dir=data, env={}, flags={"hub.redis": redis_url})
    context = open_context(settings)
    migrate(context.database)
    with context.database.transaction():
        row = Outbox.create(kind="objects:delete", payload={"keys": ["nothing/here"]}, next_at=0)
    context.queue.enqueue("outbox.deliver", row.id)
    result = run("jobs", "--burst", "--data", str(data), PARSYN_HUB_REDIS=redis_url)
    assert result.returncode == 0, result.stderr
    with context.database.connection():
        assert Outbox.get_by_id(row.id).done_at is not None
    context.close()


def test_jobs_without_a_redis_is_one_line(tmp_path: Path) -> None:
    said = one_line(run("jobs", "--data", str(tmp_path), PARSYN_HUB_REDIS=""), 2)
    assert "Set hub.redis" in said


def test_logs_without_a_log_is_one_line(tmp_path: Path) -> None:
    assert "There is no log at" in one_line(run("logs", "--dir", str(tmp_path)), 1)


def test_logs_shows_the_end_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "agent.log").write_text("".join(f"line {n}\n" for n in range(500)))
    lines = run("logs", "--dir", str(tmp_path)).stdout.splitlines()
    assert lines == [f"line {n}" for n in range(300, 500)]


def test_demo_takes_no_folder_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    said = one_line(run("demo", "--exit", "--data", str(tmp_path)), 2)
    assert "is not empty" in said
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_migrate_says_what_it_did(tmp_path: Path) -> None:
    first = json.loads(run("migrate", "--json", "--data", str(tmp_path)).stdout)
    assert first["applied_now"]
    assert all(row["applied"] for row in first["migrations"])
    again = json.loads(run("migrate", "--json", "--data", str(tmp_path)).stdout)
    assert again["applied_now"] == []
    status = run("migrate", "--status", "--data", str(tmp_path)).stdout.splitlines()
    assert all(line.startswith("applied") for line in status)


@pytest.mark.parametrize("name", ["serve", "demo", "jobs", "init", "start", "logs"])
def test_help_says_what_a_command_does(name: str) -> None:
    result = run(name, "--help")
    assert result.returncode == 0
    assert "Usage: " in result.stdout
    assert result.stdout.count("\n") > 4
