"""Every page in both languages, both themes and two widths: looked at, and held to the rules.

The screenshots lie in ./screenshots/ and are what the documents show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser import stage
from tests.browser.conftest import ROOT, SCREENSHOTS, Pages
from tests.browser.watch import Watch, axe_findings

pytestmark = pytest.mark.browser
LOCALES = {"en": "en-US", "fr": "fr-FR"}
WIDTHS = {1440: 900, 390: 844}
THEMES = ("light", "dark")
OVERFLOW = """() => {
  const root = document.scrollingElement
  if (root.scrollWidth <= root.clientWidth) return null
  const wide = [...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
    .map((one) => `${one.tagName.toLowerCase()}.${String(one.className).slice(0, 60)}`)
  return `${root.scrollWidth} > ${root.clientWidth}: ${wide.slice(0, 4).join(', ')}`
}"""
WORDS = """() => {
  const names = ['aria-label', 'title', 'placeholder']
  const marked = [...document.querySelectorAll(names.map((name) => `[${name}]`).join())]
  const labels = marked.flatMap((one) => names.map((name) => one.getAttribute(name) ?? ''))
  return [document.title, document.body.innerText, ...labels].join('\\n')
}"""


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


@pytest.fixture(scope="module")
def catalogues() -> dict[str, dict[str, str]]:
    """Every key with its sentence, by language, read from the source of the web UI."""
    found: dict[str, dict[str, str]] = {}
    for language in LOCALES:
        text = "\n".join(
            file.read_text() for file in (ROOT / "webui/src/i18n" / language).glob("*.ts")
        )
        found[language] = dict(re.findall(r'^\s+"(\w+\.\w+)":\s+"(.+)",$', text, re.MULTILINE))
        assert len(found[language]) > 300
    return found


@pytest.mark.parametrize("language", LOCALES)
def test_every_page(
    language: str,
    pages: Pages,
    appliance: Appliance,
    session: Any,
    furnished: dict[str, Any],
    catalogues: dict[str, dict[str, str]],
) -> None:
    findings: list[str] = []
    outside = pages.open(appliance.url, LOCALES[language])
    inside = pages.open(appliance.url, LOCALES[language], storage_state=session)
    for stop in stops(furnished):
        page = inside if stop.signed_in else outside
        visit(page, pages.watches[page], stop)
        found = [f"lang is {lang}" for lang in [lang_of(page)] if lang != language]
        found += words_left(page, language, catalogues)
        for width in WIDTHS:
            for theme in THEMES:
                found += look(page, f"{stop.name}-{width}-{theme}-{language}", width, theme)
                if language == "en":
                    found += axe_findings(page, axe_options(width, theme))
        findings += [f"{stop.name}: {one}" for one in found]
    assert not findings, "\n".join(dict.fromkeys(findings))


def visit(page: Page, watch: Watch, stop: Stop) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(stop.path)
    page.locator("h1, [role=dialog]").first.wait_for(state="attached")
    watch.settle()
    page.wait_for_function("() => !document.querySelector('.skeleton')")


def lang_of(page: Page) -> str:
    return str(page.evaluate("document.documentElement.lang"))


def words_left(page: Page, language: str, catalogues: dict[str, dict[str, str]]) -> list[str]:
    """Keys, holes that nothing filled, and sentences of the other language."""
    text = page.evaluate(WORDS)
    found = [f"key {key}" for key in catalogues[language] if re.search(rf"\b{key}\b", text)]
    found += [f"hole {hole}" for hole in re.findall(r"\{[a-z_]+\}", text)]
    if language != "en":
        own = catalogues[language]
        found += [
            f"English: {sentence}"
            for key, sentence in catalogues["en"].items()
            if sentence.count(" ") > 2 and sentence != own.get(key) and sentence in text
        ]
    return found


def look(page: Page, name: str, width: int, theme: str) -> list[str]:
    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")
    overflow = page.evaluate(OVERFLOW)
    return [f"overflow at {width} px: {overflow}"] if overflow else []


def axe_options(width: int, theme: str) -> dict[str, Any]:
    """Everything once for each width; what a theme can change, for each theme."""
    if theme == "light":
        return {}
    return {"runOnly": {"type": "rule", "values": ["color-contrast"]}}


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
    page.get_by_role("heading", name="Overview").wait_for()
    watch.settle()
    assert len(sizes) > 1
    assert sum(sizes) < 250_000, sizes
