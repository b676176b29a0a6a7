"""Every page in both languages, both themes and two widths: looked at, and held to the rules.

The screenshots lie in ./screenshots/ and are what the documents show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser import stage
from tests.browser.conftest import Pages
from tests.browser.looks import LOCALES, WORDS, inspect, lang_of
from tests.browser.watch import Watch

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Stop:
    """One page of the walk: a name for its pictures, its address, and what shows it is there."""

    name: str
    path: str
    signed_in: bool = True


def stops(stage_ids: dict[str, Any]) -> list[Stop]:
    ids = stage_ids
    return [
        Stop("login", "/login", signed_in=False),
        Stop("setup-done", "/setup?token=x", signed_in=False),
        Stop("overview", "/"),
        Stop("datasets", "/datasets"),
        Stop("dataset-add", "/datasets?add=1"),
        Stop("dataset-messages", f"/datasets/{ids['dataset']}"),
        Stop("dataset-rendered", f"/datasets/{ids['dataset']}?view=rendered&model={ids['tiny']}"),
        Stop("dataset-raw", f"/datasets/{ids['dataset']}?view=raw"),
        Stop("dataset-report", f"/datasets/{ids['broken']}?tab=report"),
        Stop("dataset-statistics", f"/datasets/{ids['dataset']}?tab=statistics"),
        Stop("dataset-details", f"/datasets/{ids['dataset']}?tab=details"),
        Stop("models", "/models"),
        Stop("model-add", "/models?add=1"),
        Stop("model", f"/models/{ids['model']}"),
        Stop("model-files", f"/models/{ids['model']}?tab=files"),
        Stop("model-exports", f"/models/{ids['model']}?tab=exports"),
        Stop("model-evaluations", f"/models/{ids['model']}?tab=evaluations"),
        Stop("training", "/training"),
        Stop("training-new", f"/training/new?dataset={ids['dataset']}&model={ids['tiny']}"),
        Stop("training-completed", f"/training/{ids['completed']}"),
        *[
            Stop(f"training-{tab}", f"/training/{ids['completed']}?tab={tab}")
            for tab in ("log", "samples", "checkpoints", "timeline", "configuration")
        ],
        Stop("training-failed", f"/training/{ids['failed']}"),
        Stop("workers", "/workers"),
        Stop("worker", f"/workers?worker={ids['worker']}"),
        Stop("worker-add", "/workers?add=1"),
        Stop("chat", "/chat"),
        Stop("conversation", f"/chat/{ids['conversation']}"),
        Stop("account", "/settings/account"),
        Stop("api-keys", "/settings/api-keys"),
        Stop("not-found", "/nowhere"),
    ]


@pytest.fixture(scope="module")
def furnished(hub: HubClient, tiny: dict[str, Any]) -> dict[str, Any]:
    """The ids of what the walk visits."""
    broken = hub.upload_dataset("Some broken rows", "broken.jsonl", stage.broken_jsonl())
    completed = stage.completed_job(hub, tiny)
    failed = stage.failed_job(hub, tiny)
    hub.call("POST", "/api/v1/api-keys", {"name": "Nightly evaluation", "scopes": ["read"]})
    return {
        "tiny": tiny["id"],
        "broken": broken["id"],
        "dataset": completed["dataset_id"],
        "completed": completed["id"],
        "model": completed["result_model_id"],
        "failed": failed["id"],
        "worker": hub.call("GET", "/api/v1/workers")["items"][0]["id"],
        "conversation": stage.conversation(hub, completed["result_model_id"])["id"],
    }


@pytest.mark.parametrize("language", LOCALES)
def test_every_page(
    language: str,
    pages: Pages,
    appliance: Appliance,
    session: Any,
    furnished: dict[str, Any],
) -> None:
    findings: list[str] = []
    outside = pages.open(appliance.url, LOCALES[language])
    inside = pages.open(appliance.url, LOCALES[language], storage_state=session)
    for stop in stops(furnished):
        page = inside if stop.signed_in else outside
        visit(page, pages.watches[page], stop)
        findings += inspect(page, stop.name, language, axe=language == "en")
    assert not findings, "\n".join(findings)


def visit(page: Page, watch: Watch, stop: Stop) -> None:
    page.goto(stop.path)
    page.locator("h1, [role=dialog]").first.wait_for(state="attached")
    watch.settle()
    page.wait_for_function("() => !document.querySelector('.skeleton')")


def test_a_generated_form_speaks_french(
    pages: Pages, appliance: Appliance, session: Any, hub: HubClient, tiny: dict[str, Any]
) -> None:
    page = pages.open(appliance.url, "fr-FR", storage_state=session)
    page.goto("/training/new")
    page.locator("details > summary").click()
    pages.watches[page].settle()
    text = page.evaluate(WORDS)
    trainers = hub.call("GET", "/api/v1/trainers")["items"]
    fields = [field for one in trainers for field in one["schema"]["properties"].values()]
    assert len(fields) > 20
    left = [field["title"] for field in fields if field.get("description", "") in text]
    assert not left, "explained in English only"


def test_the_choice_of_language_and_theme_is_kept(page: Page) -> None:
    page.goto("/settings/account")
    page.get_by_role("radio", name="Français").click()
    page.get_by_role("heading", name="Compte").wait_for()
    page.get_by_role("radio", name="Sombre").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.get_by_role("heading", name="Compte").wait_for()
    assert lang_of(page) == "fr"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("radio", name="English").click()
    page.get_by_role("radio", name="System").click()
    page.get_by_role("heading", name="Account").wait_for()


def test_first_load_is_light(page: Page, watch: Watch, tiny: dict[str, Any]) -> None:
    """Gzipped scripts of the overview on a first visit, against the goal of 250 KB."""
    sizes: list[int] = []
    page.on(
        "requestfinished",
        lambda request: (
            sizes.append(request.sizes()["responseBodySize"])
            if request.resource_type == "script"
            else None
        ),
    )
    page.goto("/")
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    watch.settle()
    assert len(sizes) > 1
    assert sum(sizes) < 250_000, sizes
