"""The form of a new training: presets, the hub's word while one types, YAML, where it may run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser.conftest import Pages, rows_jsonl
from tests.browser.looks import LOCALES, inspect
from tests.browser.watch import Watch

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
PRESETS = "/api/v1/presets"


@pytest.fixture(scope="module")
def data(hub: HubClient, tiny: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = hub.upload_dataset("Form sums", "sums.jsonl", rows_jsonl(120))
    return found


@pytest.fixture
def form(page: Page, data: dict[str, Any], tiny: dict[str, Any]) -> Page:
    page.goto(f"/training/new?dataset={data['id']}&model={tiny['id']}")
    page.get_by_role("radio", name="Balanced").wait_for()
    return page


def plan(page: Page, name: str) -> str:
    """The value beside a name in the panel."""
    panel = page.get_by_role("region", name="This run")
    found = panel.locator("dt", has_text=re.compile(rf"^{re.escape(name)}")).locator("xpath=../dd")
    return found.inner_text()


def test_presets_are_taken_changed_and_kept(form: Page, hub: HubClient) -> None:
    steps = form.get_by_role("region", name="This run")
    expect(steps).to_contain_text("114")
    assert plan(form, "Steps") == "24"
    assert "from about" in plan(form, "GPU memory")
    form.get_by_text("Quick try", exact=True).click()
    expect(steps.locator("dd", has_text=re.compile(r"^8$"))).to_be_visible()
    rank = form.get_by_label("Rank", exact=True)
    assert rank.get_attribute("placeholder") == "Quick try: 8"
    rank.fill("4")
    mark = form.get_by_role("button", name="Quick try: 8")
    expect(mark).to_be_visible()
    form.get_by_role("button", name="Save as preset").click()
    dialog = form.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Tiny try")
    dialog.get_by_label("Description").fill("For a look.")
    dialog.get_by_role("button", name="Save").click()
    dialog.wait_for(state="hidden")
    own = form.get_by_role("radio", name="Tiny try")
    expect(own).to_be_checked()
    expect(rank).to_have_value("")
    assert rank.get_attribute("placeholder") == "Tiny try: 4"
    kept = [one for one in hub.pages(PRESETS) if one["name"] == "Tiny try"]
    assert kept[0]["config"] == {"epochs": 1.0, "max_steps": 60, "lora_alpha": 16.0, "lora_r": 4}
    rank.fill("6")
    form.get_by_role("button", name="More actions").click()
    form.get_by_role("menuitem", name="Save the changes to “Tiny try”").click()
    form.wait_for_function("() => document.querySelector('[placeholder=\"Tiny try: 6\"]') !== null")
    form.get_by_role("button", name="More actions").click()
    form.get_by_role("menuitem", name="Delete").click()
    own.wait_for(state="hidden")
    form.get_by_role("button", name="Undo").click()
    own.wait_for()
    own.check()
    form.get_by_role("button", name="More actions").click()
    form.get_by_role("menuitem", name="Delete").click()
    own.wait_for(state="hidden")
    expect(form.get_by_role("radio", name="Balanced")).to_be_checked()
    assert [one["name"] for one in hub.pages(PRESETS) if not one["builtin"]] == []


def test_the_hub_says_what_is_wrong_while_one_types(form: Page) -> None:
    length = form.get_by_label("Longest sequence")
    length.fill("4096")
    message = form.get_by_text("the model's context is 512 tokens")
    expect(message).to_be_visible()
    assert length.get_attribute("aria-invalid") == "true"
    length.fill("100")
    expect(message).to_be_hidden()
    form.get_by_label("Epochs").fill("-1")
    expect(form.get_by_text("More than 0.")).to_be_visible()
    form.get_by_role("button", name=re.compile("Back to the default")).click()
    expect(form.get_by_text("More than 0.")).to_be_hidden()


def test_yaml_both_ways(form: Page, watch: Watch) -> None:
    form.get_by_label("Epochs").fill("2")
    form.get_by_role("radio", name="YAML").click()
    text = form.get_by_label("The training as YAML")
    expect(text).to_have_value(re.compile(r"config:\n  epochs: 2\n"))
    written = text.input_value()
    text.fill(written + "  : [")
    expect(form.get_by_text(re.compile(r"Line \d+: this is not valid YAML"))).to_be_visible()
    text.fill(written.replace("epochs: 2", "epochs: 5\n  lora_rr: 8") + "preset: quick\n")
    expect(
        form.get_by_text("There is no setting `lora_rr`. Did you mean `lora_r`?")
    ).to_be_visible()
    form.get_by_role("radio", name="Form").click()
    assert form.get_by_label("Epochs").input_value() == "5"
    expect(form.get_by_role("radio", name="Quick try")).to_be_checked()
    expect(form.get_by_text("lora_rr: 8")).to_be_visible()
    form.get_by_role("radio", name="YAML").click()
    text.fill(written.replace("epochs: 2", "lr: 0.001"))
    expect(form.get_by_text("Did you mean")).to_be_hidden()
    with watch.refused(422, "/training-jobs"):
        text.fill("preset: none-such\n")
        form.get_by_role("button", name="Start training").click()
        expect(form.get_by_role("alert").filter(has_text="Field required").first).to_be_visible()


def test_a_job_runs_on_the_machine_that_was_chosen(
    form: Page, hub: HubClient, watch: Watch
) -> None:
    form.get_by_role("radio", name="Chosen machines").click()
    form.get_by_role("checkbox").first.check()
    form.get_by_text("Quick try", exact=True).click()
    form.get_by_label("Longest sequence").fill("64")
    form.get_by_role("button", name="Save without starting").click()
    form.wait_for_url(re.compile(r"/training/\d+"))
    job = hub.call("GET", f"/api/v1/training-jobs/{form.url.rsplit('/', 1)[1].split('?')[0]}")
    assert job["worker_selection"]["mode"] == "specific_parsyn_workers"
    assert len(job["worker_selection"]["parsyn_worker_ids"]) == 1
    assert (job["preset"], job["resolved_config"]["max_seq_length"]) == ("quick", 64)
    form.get_by_role("button", name="More actions").click()
    form.get_by_role("menuitem", name="Duplicate with changes").click()
    expect(form.get_by_role("radio", name="Quick try")).to_be_checked()
    assert form.get_by_label("Longest sequence").input_value() == "64"
    expect(form.get_by_role("checkbox").first).to_be_checked()
    hub.call("DELETE", f"/api/v1/training-jobs/{job['id']}")


@pytest.mark.parametrize("language", LOCALES)
def test_its_looks(
    language: str,
    pages: Pages,
    appliance: Appliance,
    session: Any,
    data: dict[str, Any],
    tiny: dict[str, Any],
) -> None:
    page = pages.open(appliance.url, LOCALES[language], storage_state=session)
    page.goto(f"/training/new?dataset={data['id']}&model={tiny['id']}")
    page.get_by_role("radio").nth(3).check()
    page.get_by_role("radio").nth(7).click()
    page.locator("[inputmode]").first.fill("-1")
    page.locator("[inputmode]").nth(3).fill("4096")
    page.locator("[aria-invalid=true]").nth(1).wait_for()
    pages.watches[page].settle()
    findings = inspect(page, "training-form", language, axe=language == "en")
    page.get_by_role("radio", name="YAML").click()
    page.locator("textarea").wait_for()
    findings += inspect(page, "training-yaml", language, axe=language == "en")
    assert not findings, "\n".join(findings)
