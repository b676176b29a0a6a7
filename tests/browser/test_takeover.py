"""A machine dies in the middle of a job, and one watches another go on with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser.conftest import Pages, log_in, rows_jsonl
from tests.browser.machine import Machine
from tests.browser.tabs import open_tab
from tests.tiny_model import make_in_child

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
ARRIVAL = 180_000
JOBS = "/api/v1/training-jobs"
SHORT_LEASES = {
    "PARSYN_LEASES_HEARTBEAT_SECONDS": "1",
    "PARSYN_LEASES_OFFLINE_SECONDS": "4",
    "PARSYN_LEASES_UNREACHABLE_SECONDS": "4",
    "PARSYN_LEASES_BOOT_GRACE_SECONDS": "0",
}
CONFIG = {
    "epochs": 20,
    "max_steps": 600,
    "batch_size": 4,
    "gradient_accumulation_steps": 1,
    "max_seq_length": 128,
    "eval_steps": 60,
    "save_steps": 60,
    "sample_prompts": 0,
}


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Appliance]:
    """An appliance without an agent of its own, which soon takes a silent one for lost."""
    running = Appliance(tmp_path / "data", env=SHORT_LEASES)
    running.create_owner()
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    made = [Machine(tmp_path / f"home{number}") for number in (1, 2)]
    yield made
    for machine in made:
        machine.clear()


def prepare_a_job(hub: HubClient, hasty: Appliance, tmp_path: Path) -> dict[str, Any]:
    """Saved and not started."""
    model = hasty.import_model(make_in_child(tmp_path / "tiny"), "Tiny")
    data = hub.upload_dataset("Sums", "sums.jsonl", rows_jsonl(200))
    body = {"name": "Long run", "dataset_id": data["id"], "model_id": model["id"], "config": CONFIG}
    made: dict[str, Any] = hub.call("POST", JOBS, body)
    return made


def test_another_machine_takes_over(
    hasty: Appliance, machines: list[Machine], pages: Pages, tmp_path: Path
) -> None:
    hub = hasty.client()
    job = prepare_a_job(hub, hasty, tmp_path)
    page = pages.open(hasty.url)
    page.goto("/login?next=/workers")
    log_in(page)
    expect(page.get_by_text("No workers yet")).to_be_visible()
    first, second = machines
    init = add_the_first(page, first)
    start_it(page, hub, job["id"])
    second.run(init)
    second.start()
    hub.wait("/api/v1/workers/summary", lambda row: row["online"] == 2, seconds=120)

    first.kill()
    expect(page.get_by_text("lab-1 has not been heard of.")).to_be_visible(timeout=ARRIVAL)
    summary = page.locator("section").first
    expect(summary.get_by_role("link", name="lab-2")).to_be_visible(timeout=ARRIVAL)
    expect(page.get_by_text("Running", exact=True).first).to_be_visible()
    see_why(page)
    see_the_fleet(page)

    page.goto(f"/training/{job['id']}?tab=timeline")
    expect(page.get_by_text("Done", exact=True).first).to_be_visible(timeout=ARRIVAL)
    done = hub.call("GET", f"{JOBS}/{job['id']}")
    assert done["attempt"] == 2
    steps = hub.call("GET", f"{JOBS}/{job['id']}/metrics?names=loss")["series"]["loss"]
    assert [step for step, *_ in steps] == list(range(1, 601)), "each step once"


def add_the_first(page: Page, machine: Machine) -> str:
    """The command with which machines are pointed at the hub."""
    page.get_by_role("button", name="Add a worker").first.click()
    dialog = page.get_by_role("dialog", name="Add a worker")
    dialog.get_by_label("Names begin with").fill("lab")
    dialog.get_by_role("button", name="Make the key").click()
    init: str = dialog.locator("code").nth(1).inner_text()
    machine.run(init)
    machine.start()
    expect(dialog.get_by_text("lab-1 is here")).to_be_visible(timeout=ARRIVAL)
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_role("row").filter(has_text="lab-1")).to_be_visible()
    return init


def start_it(page: Page, hub: HubClient, job_id: int) -> None:
    """Started by a click, and watched until it has something to go on from."""
    page.goto(f"/training/{job_id}?tab=checkpoints")
    page.get_by_role("button", name="Start training").click()
    expect(page.get_by_role("link", name="lab-1")).to_be_visible(timeout=ARRIVAL)
    expect(page.get_by_text("Step 60", exact=True)).to_be_visible(timeout=ARRIVAL)


def see_why(page: Page) -> None:
    timeline = open_tab(page, "Timeline")
    for words in (
        "Offered to lab-1.",
        "lab-1 has been silent for 4 s",
        "lab-1 did not come back",
        "attempt 2",
        "Offered to lab-2.",
    ):
        expect(timeline.get_by_text(re.compile(re.escape(words))).first).to_be_visible()
    expect(open_tab(page, "Placement").get_by_role("link", name="lab-2")).to_be_visible()


def see_the_fleet(page: Page) -> None:
    page.goto("/workers")
    lost = page.get_by_role("row").filter(has_text="lab-1")
    heir = page.get_by_role("row").filter(has_text="lab-2")
    expect(lost.get_by_text("Offline")).to_be_visible()
    expect(heir.get_by_role("link", name="Long run")).to_be_visible()
    expect(heir.get_by_text("Training", exact=True)).to_be_visible()
    lost.get_by_role("button", name="lab-1", exact=True).click()
    panel = page.get_by_role("dialog", name="lab-1")
    panel.get_by_role("radio", name="Problems").click()
    expect(panel.get_by_role("link", name="Open the job").first).to_be_visible()
