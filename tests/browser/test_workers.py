"""A machine is added from the browser, seen live, and seen to go."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.appliance import Appliance

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
ARRIVAL = 180_000


class Machine:
    """An agent that is set up and run by the commands which the dialog shows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "CACHE_DIR": str(folder / "cache"), "RECONNECT_DELAY": "1"}

    def run(self, *arguments: str, stdin: str = "") -> None:
        result = subprocess.run(
            [sys.executable, "-m", "parsyn.cli.main", *arguments, "--dir", str(self.folder)],
            input=stdin, text=True, capture_output=True, env=self.env, timeout=120, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "agent")
    yield made
    if (made.folder / ".env").exists():
        made.run("stop")


def test_a_machine_comes_and_goes(page: Page, appliance: Appliance, machine: Machine) -> None:
    page.goto("/workers")
    page.get_by_role("button", name="Add a worker").first.click()
    dialog = page.get_by_role("dialog", name="Add a worker")
    dialog.get_by_label("Name of the key").fill("Lab")
    dialog.get_by_label("Names begin with").fill("lab")
    dialog.get_by_role("button", name="Make the key").click()
    commands = dialog.locator("code")
    expect(commands).to_have_count(3)
    init, key, start = commands.all_inner_texts()
    assert key.startswith("enroll_")
    assert start == "parsyn start"
    expect(dialog.get_by_text("Waiting for the worker")).to_be_visible()

    asked = init.removeprefix("parsyn ").split()
    machine.run(*asked, "--key-stdin", "--non-interactive", stdin=f"{key}\n")
    machine.run("start")
    expect(dialog.get_by_text(re.compile("Here: lab-1"))).to_be_visible(timeout=ARRIVAL)
    dialog.get_by_role("button", name="Done").click()

    row = page.get_by_role("row").filter(has_text="lab-1")
    expect(row.get_by_text("Idle")).to_be_visible(timeout=ARRIVAL)
    expect(row.get_by_role("img", name=re.compile("^Memory: .*[1-9]"))).to_be_visible()
    key_row = page.get_by_role("listitem").filter(has_text="Lab")
    expect(key_row.get_by_text("1 worker enrolled")).to_be_visible()
    expect(row.get_by_text(re.compile("second|now"))).to_be_visible()
    row.get_by_role("button", name="lab-1").click()
    panel = page.get_by_role("dialog", name="lab-1")
    expect(panel.get_by_text("PyTorch")).to_be_visible()
    page.keyboard.press("Escape")

    machine.run("stop")
    expect(row.get_by_text("Offline")).to_be_visible(timeout=ARRIVAL)
    row.get_by_role("button", name="lab-1").click()
    panel.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog", name=re.compile("Remove")).get_by_role(
        "button", name="Remove"
    ).click()
    expect(row).to_have_count(0)
    key_row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(key_row.get_by_text("Revoked")).to_be_visible()
