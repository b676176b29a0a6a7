"""A machine is added from the browser, seen live, told what to do, and seen to go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser.machine import Machine

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
ARRIVAL = 180_000


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "home")
    yield made
    made.clear()


def make_a_key(page: Page) -> Locator:
    """The dialog, once it shows the commands."""
    page.goto("/workers")
    page.get_by_role("button", name="Add a worker").first.click()
    dialog = page.get_by_role("dialog", name="Add a worker")
    dialog.get_by_label("Name of the key").fill("Lab")
    dialog.get_by_label("Names begin with").fill("lab")
    dialog.get_by_label("How many machines").fill("3")
    dialog.get_by_label("Expires").select_option(label="in 1 day")
    dialog.get_by_role("button", name="Make the key").click()
    return dialog


def test_a_machine_comes_and_goes(page: Page, appliance: Appliance, machine: Machine) -> None:
    dialog = make_a_key(page)
    commands = dialog.locator("code")
    expect(commands).to_have_count(3)
    install, init, start = commands.all_inner_texts()
    assert install == f"curl -fsSL {appliance.url}/install/worker | sh"
    assert re.match(r"printf '%s' enroll_\S+ \| parsyn init --url http", init)
    assert start == "parsyn start"
    assert httpx.get(install.split()[2], trust_env=False).text.startswith("#!/bin/sh")
    expect(dialog.get_by_text("Waiting for the machine")).to_be_visible()

    machine.run(init)
    machine.run(start)
    expect(dialog.get_by_text("lab-1 is here")).to_be_visible(timeout=ARRIVAL)
    expect(dialog.get_by_text("It takes waiting jobs by itself")).to_be_visible()
    dialog.get_by_role("button", name="Done").click()

    row = page.get_by_role("row").filter(has_text=re.compile("lab-(1|one)"))
    expect(row.get_by_text("Idle")).to_be_visible(timeout=ARRIVAL)
    expect(row.get_by_role("img", name=re.compile("^Memory: .*[1-9]"))).to_be_visible()
    expect(row.get_by_text(re.compile(r"\ds ago"))).to_be_visible()
    key_row = page.get_by_role("listitem").filter(has_text="Lab")
    expect(key_row.get_by_text("1 of 3 workers enrolled")).to_be_visible()
    expect(key_row.get_by_text(re.compile("tomorrow|in 1 day|in 2[34] hours"))).to_be_visible()
    look_into_it(page, row)

    machine.run("parsyn stop")
    expect(row.get_by_text("Offline")).to_be_visible(timeout=ARRIVAL)
    row.get_by_role("button", name="Actions for lab-one").click()
    page.get_by_role("menuitem", name="Remove").click()
    question = page.get_by_role("dialog", name="Remove “lab-one”?")
    expect(question.get_by_text("Models, datasets and finished jobs stay.")).to_be_visible()
    question.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_have_count(0)  # behind it no row is to be seen
    expect(row).to_have_count(0)
    key_row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(key_row.get_by_text("Revoked")).to_be_visible()


def look_into_it(page: Page, row: Locator) -> None:
    """The panel: curves, limits, its verbs, a new name; then a link that opens the same."""
    row.get_by_role("button", name="lab-1", exact=True).click()
    panel = page.get_by_role("dialog", name="lab-1")
    expect(panel.get_by_text("PyTorch")).to_be_visible()
    expect(panel.get_by_role("img", name="Processor use")).to_be_visible()
    panel.get_by_role("button", name="Rename").click()
    panel.get_by_label("Name", exact=True).fill("lab-one")
    panel.get_by_role("button", name="Save").click()
    panel = page.get_by_role("dialog", name="lab-one")
    panel.get_by_role("button", name="Pause").click()
    expect(row.get_by_text("Paused")).to_be_visible()
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(row.get_by_text("Idle")).to_be_visible()
    panel.get_by_role("button", name="Add hours").click()
    panel.get_by_role("button", name="Sunday").click()
    panel.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The limits of lab-one are saved.")).to_be_visible()
    page.reload()
    expect(panel.get_by_role("button", name="Sunday", pressed=True)).to_be_visible()
    expect(panel.get_by_text("Its limits were changed.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_a_machine_registered_by_hand(page: Page, hub: HubClient, machine: Machine) -> None:
    page.goto("/workers?add=1")
    dialog = page.get_by_role("dialog", name="Add a worker")
    dialog.get_by_role("radio", name="Register one by hand").click()
    dialog.get_by_label("Name", exact=True).fill("attic")
    dialog.get_by_role("button", name="Register").click()
    init = dialog.locator("code").nth(1)
    expect(init).to_contain_text("wkr_")
    machine.run(init.inner_text())
    machine.start()
    expect(dialog.get_by_text("attic is here")).to_be_visible(timeout=ARRIVAL)
    dialog.get_by_role("button", name="Done").click()
    replace_its_key(page, machine)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    attic = next(row for row in hub.pages("/api/v1/workers") if row["name"] == "attic")
    hub.call("DELETE", f"/api/v1/workers/{attic['id']}")


def replace_its_key(page: Page, machine: Machine) -> None:
    """The old key ends at once; the commands that are shown bring the machine back."""
    # By its tag: what lies behind a dialog has no role.
    row = page.locator("tr").filter(has_text="attic")
    row.get_by_role("button", name="attic", exact=True).click()
    page.get_by_role("dialog", name="attic").get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Replace the key").click()
    dialog = page.get_by_role("dialog", name="Replace the key of “attic”?")
    dialog.get_by_role("button", name="Replace the key").click()
    commands = dialog.locator("code").all_inner_texts
    expect(dialog.locator("code")).to_have_count(3)
    stop, init, _ = commands()
    expect(row.get_by_text("Offline")).to_be_visible(timeout=ARRIVAL)
    machine.run(stop)
    machine.await_end()
    machine.run(init)
    machine.start()
    dialog.get_by_role("button", name="Done").click()
    expect(row.get_by_text("Idle")).to_be_visible(timeout=ARRIVAL)


def test_filters_and_columns_are_kept(page: Page, hub: HubClient, tiny: dict[str, Any]) -> None:
    made = [
        hub.call("POST", "/api/v1/workers", {"name": f"spare-{number}"})["worker"]["id"]
        for number in range(2)
    ]
    page.goto("/workers")
    page.get_by_role("button", name=re.compile("^Online")).click()
    expect(page.get_by_role("row").filter(has_text="spare-")).to_have_count(0)
    page.get_by_role("button", name="Show every state").click()
    page.get_by_role("searchbox").fill("spare")
    page.get_by_role("button", name="Last seen").click()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Used for").click()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("spare")
    expect(page.get_by_role("row").filter(has_text="spare-")).to_have_count(2)
    expect(page.get_by_role("columnheader", name="Last seen")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(page.get_by_role("columnheader", name="Used for")).to_have_count(0)
    pause_together(page)
    for id in made:
        hub.call("DELETE", f"/api/v1/workers/{id}")


def pause_together(page: Page) -> None:
    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("2 workers are paused.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.get_by_label("Select all").check()
    expect(page.get_by_role("button", name="Resume")).to_be_disabled()
