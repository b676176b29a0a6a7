"""API keys by clicking, and the whole UI by keyboard."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
MOST_TABS = 40
FOCUSED = "() => document.activeElement?.textContent?.trim() ?? ''"


def test_a_key_is_made_used_and_deleted(
    page: Page, appliance: Appliance, tiny: dict[str, Any]
) -> None:
    page.goto("/settings/api-keys")
    page.get_by_role("button", name="New API key").first.click()
    dialog = page.get_by_role("dialog", name="New API key")
    dialog.get_by_label("Name").fill("From the browser")
    expect(dialog.get_by_label(re.compile("^Inference"))).to_be_checked()
    dialog.get_by_label(re.compile("^Read")).uncheck()
    dialog.get_by_label("Valid for").select_option(label="30 days")
    dialog.get_by_role("button", name="Create the key").click()
    key = dialog.locator("code").inner_text()
    assert key.startswith("psn_")
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_text(key)).to_have_count(0)

    with httpx.Client(base_url=appliance.url, headers={"Authorization": f"Bearer {key}"}) as http:
        assert [model["id"] for model in http.get("/v1/models").json()["data"]]
        assert http.get("/api/v1/datasets").status_code == 403, "its scopes hold"
        page.reload()
        row = page.get_by_role("listitem").filter(has_text="From the browser")
        expect(row.get_by_text("Inference")).to_be_visible()
        expect(row.get_by_text(re.compile("^Used"))).to_be_visible()
        expect(page.get_by_text(key)).to_have_count(0)
        row.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("dialog")).to_have_count(0)  # behind it no row is to be seen
        expect(row).to_have_count(0)
        assert http.get("/v1/models").status_code == 401


def tab_to(page: Page, text: str) -> None:
    """Press Tab until what has the focus reads `text`."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == text:
            return
    raise AssertionError(f"“{text}” is not among the first {MOST_TABS} stops of Tab.")


def test_the_palette_finds_things_by_keyboard(
    page: Page, hub: HubClient, tiny: dict[str, Any]
) -> None:
    page.goto("/")
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    page.keyboard.press("/")
    search = page.get_by_role("combobox", name="Search or run a command")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(search).to_have_count(0)

    page.keyboard.press("/")
    page.keyboard.type("tin")
    expect(page.get_by_role("option", name="Tiny").first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tiny", level=1)).to_be_visible()
    assert page.url.endswith(f"/models/{tiny['id']}")

    page.keyboard.press("/")
    page.keyboard.type("new train")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New training", level=1)).to_be_visible()


@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("/datasets", "Add a dataset"),
        ("/models", "Add a model"),
        ("/workers", "Add a worker"),
        ("/settings/api-keys", "New API key"),
    ],
)
def test_tab_reaches_the_main_action_and_escape_leaves_it(
    page: Page, path: str, action: str
) -> None:
    page.goto(path)
    page.get_by_role("button", name=action).first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Skip to the content"
    tab_to(page, action)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=action)
    expect(dialog).to_be_visible()
    inside = dialog.locator(":focus")
    expect(inside).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name=action).first).to_be_focused()


def test_the_skip_link_leads_past_the_rail(page: Page) -> None:
    page.goto("/datasets")
    page.get_by_role("heading", name="Datasets", level=1).wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    inside = "() => document.querySelector('main').contains(document.activeElement)"
    assert page.evaluate(inside)
