"""An empty hub: from the one-time link to an account, out and in again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.appliance import EMAIL, PASSWORD, Appliance
from tests.browser.conftest import Pages, log_in
from tests.browser.looks import inspect
from tests.browser.watch import Watch

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
EMPTY = {
    "/datasets": "No datasets yet",
    "/models": "No models yet",
    "/training": "No training yet",
    "/training/new": "No dataset is ready.",
    "/workers": "No workers yet",
    "/chat": "There is no model to talk to",
    "/settings/api-keys": "No API keys yet",
}


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Appliance]:
    running = Appliance(tmp_path / "data")
    running.start()
    yield running
    running.stop()


def set_up_in_both_languages(page: Page) -> list[str]:
    page.get_by_role("button", name="Français").click()
    page.get_by_role("button", name="Créer le compte").wait_for()
    findings = inspect(page, "setup", "fr", axe=False)
    page.get_by_role("button", name="English").click()
    page.get_by_role("button", name="Create the account").wait_for()
    return findings + inspect(page, "setup", "en", axe=True)


def walk_empty(page: Page, watch: Watch) -> list[str]:
    """Every page that can be empty; each says what to do next."""
    findings = inspect(page, "empty-overview", "en", axe=True)
    for path, says in EMPTY.items():
        page.goto(path)
        page.get_by_text(says).first.wait_for()
        watch.settle()
        findings += inspect(page, f"empty-{path.rpartition('/')[2]}", "en", axe=True)
    page.goto("/")
    return findings


def test_the_first_account(empty: Appliance, pages: Pages) -> None:
    page = pages.open(empty.url)
    page.goto("/")
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_text("This hub has no account yet.")).to_be_visible()

    link = re.search(r"http\S+/setup\S+", empty.greeting)
    assert link, empty.greeting
    page.goto(link[0])
    findings = set_up_in_both_languages(page)
    page.get_by_label("Name").fill("Olive Owner")
    page.get_by_label("E-mail").fill(EMAIL)
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Create the account").click()
    field = page.get_by_label("Password")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("At least 8 characters are needed"))
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()

    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    steps = page.get_by_role("listitem").filter(has_text="To do")
    expect(steps).to_have_count(3)
    for action in ("Add a dataset", "Add a model", "Add a worker"):
        expect(steps.get_by_role("link", name=action)).to_be_visible()
    expect(page.get_by_role("button", name="Live", exact=True)).to_be_visible()
    findings += walk_empty(page, pages.watches[page])

    assert not findings, "\n".join(findings)

    page.get_by_role("button", name="Account").click()
    page.get_by_role("menuitem", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.goto("/datasets?add=1")
    expect(page).to_have_url(re.compile(r"/login\?next="))

    with pages.watches[page].refused(401, "/auth/login"):
        log_in(page, "not the password")
        expect(page.get_by_text("The e-mail address or the password is not right.")).to_be_visible()
    field = page.get_by_label("Password")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("not right"))

    log_in(page)
    expect(page.get_by_role("dialog", name="Add a dataset")).to_be_visible()
    page.goto(link[0])
    expect(page.get_by_text("This hub is set up")).to_be_visible()
