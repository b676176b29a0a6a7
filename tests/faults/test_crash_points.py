"""Crash points: the table, the places, the page and the simulated cases name the same ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from parsyn import crash
from tests.faults import faults

ROOT = Path(__file__).parents[2]


def places() -> dict[str, list[str]]:
    """The product's files by the points that they pass."""
    found: dict[str, list[str]] = {}
    for folder in ("parsyn", "worker"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r'crash\.point\("([^"]+)"\)', path.read_text()):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def test_every_point_is_passed_somewhere_and_no_other() -> None:
    assert set(places()) == set(crash.POINTS)


def test_every_point_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z.]+)` \| (.+) \|$", page, re.MULTILINE))
    assert rows == dict(crash.POINTS)


def test_the_cases_die_at_known_points() -> None:
    assert set(faults.HUB_POINTS) | set(faults.AGENT_POINTS) <= set(crash.POINTS)


def crashing(setting: str, program: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, crash.VARIABLE: setting}
    command = [sys.executable, "-c", f"from parsyn import crash\n{program}"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=ROOT)


def test_it_dies_at_the_passage_that_was_asked_for() -> None:
    program = (
        "try:\n"
        "  for n in range(5): print(n, flush=True); crash.point('job.before')\n"
        "finally: print('goodbye')"
    )
    died = crashing("job.before:3", program)
    assert (died.returncode, died.stdout.split()) == (crash.STATUS, ["0", "1", "2"])
    lives = crashing("job.after:3", program)
    assert (lives.returncode, lives.stdout.split()[-1]) == (0, "goodbye")


@pytest.mark.parametrize("setting", ["nowhere:1", "job.before", "job.before:0", "job.before:x", ""])
def test_a_point_that_there_is_not_is_refused(setting: str) -> None:
    refused = crashing(setting, "")
    assert refused.returncode == 1
    assert "PARSYN_CRASH_AT must be POINT:N" in refused.stderr


def test_without_the_variable_nothing_happens() -> None:
    for point in crash.POINTS:
        crash.point(point)
