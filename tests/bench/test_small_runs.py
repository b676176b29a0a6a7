"""Each benchmark of the fleet, small: it runs, loses nothing and says what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 120


def run(script: str, *arguments: str) -> dict[tuple[str, str], float]:
    """(bench, name) → value of each line that it prints."""
    paths = [ROOT, ROOT / "worker", ROOT / "plugins"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / script), *arguments],
        capture_output=True, text=True, timeout=SECONDS, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(line["bench"], line["name"]): line["value"] for line in lines}


def test_load_loses_nothing() -> None:
    found = run(
        "load.py", "--agents", "20", "--dashboards", "3", "--working", "4", "--seconds", "1",
        "--settle", "0.3",
    )  # fmt: skip
    for name in ("events lost", "events doubled", "disconnects", "reports not acknowledged",
                 "reports not stored", "told to start over", "tasks dropped"):  # fmt: skip
        assert found["load", name] == 0, name
    assert found["load", "events seen"] > 10
    assert 0 < found["load", "sent to seen, p50"] < 5
    assert found["load", "hub CPU"] > 0


def test_storm_requeues_nothing() -> None:
    found = run("storm.py", "--agents", "20", "--working", "4", "--settle", "0.3")
    for name in ("not back", "tasks requeued", "tasks not running", "tasks dropped"):
        assert found["storm", name] == 0, name
    assert found["storm", "all are back after"] > 0


def test_dispatch_starts_every_job() -> None:
    found = run("dispatch.py", "--agents", "3", "--jobs", "10")
    label = "dispatch to 3 agents"
    assert found[label, "submitted to offered, p50"] > 0
    assert found[label, "many at once"] > 0


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def test_metrics_are_stored_on(database: str, request: pytest.FixtureRequest) -> None:
    if database == "postgresql":
        request.getfixturevalue("postgres")
    found = run("metrics_store.py", "--rounds", "1", "--rows", "4000", "--databases", database)
    assert found[f"metrics-store on {database}", "stored"] > 0


def test_an_upload_that_is_cut_off_arrives_whole() -> None:
    found = run("upload.py", "--mib", "40", "--cuts", "2")
    assert found["upload", "digest equal"] == 1
    assert found["upload", "cuts"] == 2
    assert found["upload", "hub memory, peak above its start"] < 64
