"""Runs that go on from a checkpoint, and the pages of evaluations and exports."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser import stage
from tests.browser.conftest import Pages, rows_jsonl
from tests.browser.looks import LOCALES, inspect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
JOBS = stage.JOBS


def checkpoints(hub: HubClient, job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hub.call("GET", f"{JOBS}/{job['id']}/checkpoints")["items"]
    return found


def test_a_run_goes_on_from_the_checkpoint_that_was_chosen(
    page: Page, hub: HubClient, tiny: dict[str, Any]
) -> None:
    data = hub.upload_dataset("To go on", "on.jsonl", rows_jsonl(60))
    config = {**stage.CONFIG, "max_steps": 100_000, "epochs": 1000, "sample_prompts": 0}
    body = {"dataset_id": data["id"], "model_id": tiny["id"], "config": config, "name": "Goes on"}
    job = hub.call("POST", JOBS, body)
    hub.call("POST", f"{JOBS}/{job['id']}/start")
    hub.wait(f"{JOBS}/{job['id']}/checkpoints", lambda row: len(row["items"]) >= 2, seconds=240)
    page.goto(f"/training/{job['id']}?tab=checkpoints")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()
    resumes = page.get_by_role("button", name="Resume from here")
    expect(resumes.nth(1)).to_be_visible()
    oldest = min(one["step"] for one in checkpoints(hub, job))
    line = page.get_by_role("listitem").filter(has_text=re.compile(rf"^Step {oldest:,}(?!\d)"))
    line.get_by_role("button", name="Resume from here").click()
    expect(page.get_by_text(re.compile(r"step \d+ of"))).to_be_visible(timeout=120_000)

    def has_gone_on(row: dict[str, Any]) -> bool:
        return any(one["attempt"] == 2 for one in row["items"])

    hub.wait(f"{JOBS}/{job['id']}/checkpoints", has_gone_on, seconds=120)
    made = [one["step"] for one in checkpoints(hub, job) if one["attempt"] == 2]
    events = hub.call("GET", f"{JOBS}/{job['id']}/events")["items"]
    assert any(f"from the checkpoint at step {oldest}" in event["cause"] for event in events)
    assert (min(made) - oldest) % stage.CONFIG["save_steps"] == 0
    hub.call("POST", f"{JOBS}/{job['id']}/cancel")
    hub.wait(f"{JOBS}/{job['id']}", lambda row: row["status"] == "cancelled", seconds=60)


@pytest.fixture(scope="module")
def work(hub: HubClient, tiny: dict[str, Any]) -> dict[str, int]:
    """An evaluation that went well and one of data that is too long."""
    job = stage.completed_job(hub, tiny)
    model, data = job["result_model_id"], job["dataset_id"]
    body = {"model_id": model, "dataset_id": data, "params": {"max_rows": 8}}
    evaluation = hub.call("POST", "/api/v1/evaluations", body)
    export = hub.call("POST", f"/api/v1/models/{model}/export", {"format": "gguf"})
    over = ("completed", "failed", "cancelled")
    for kind, one in (("evaluations", evaluation), ("exports", export)):
        hub.wait(f"/api/v1/{kind}/{one['id']}", lambda row: row["status"] in over, seconds=240)
    return {"evaluation": evaluation["id"], "export": export["id"], "model": model}


@pytest.mark.parametrize("language", LOCALES)
def test_their_looks(
    language: str, pages: Pages, appliance: Appliance, session: Any, work: dict[str, int]
) -> None:
    page = pages.open(appliance.url, LOCALES[language], storage_state=session)
    findings: list[str] = []
    for kind in ("evaluation", "export"):
        page.goto(f"/{kind}s/{work[kind]}")
        page.get_by_role("log").wait_for()
        pages.watches[page].settle()
        findings += inspect(page, kind, language, axe=language == "en")
    assert not findings, "\n".join(findings)


def test_an_evaluation_is_found_from_the_overview_and_deleted(
    page: Page, work: dict[str, int], hub: HubClient
) -> None:
    name = hub.call("GET", f"/api/v1/evaluations/{work['evaluation']}")["name"]
    page.goto("/")
    page.get_by_role("link", name=name).first.click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text("lower is better").first).to_be_visible()
    expect(page.get_by_role("log").locator("time").first).to_be_visible()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("tab", name="Evaluations")).to_be_visible()
    left = hub.call("GET", f"/api/v1/evaluations?model_id={work['model']}")["items"]
    assert work["evaluation"] not in [one["id"] for one in left]
