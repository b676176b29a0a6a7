"""An empty hub: from the one-time link to an account, out and in again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.appliance import EMAIL, PASSWORD, Appliance
from tests.browser.conftest import SCREENSHOTS, Pages, log_in

pytestmark = pytest.mark.browser


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Appliance]:
    running = Appliance(tmp_path / "data")
    running.start()
    yield running
    running.stop()


def test_the_first_account(empty: Appliance, pages: Pages) -> None:
    page = pages.open(empty.url)
    page.goto("/")
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_text("This hub has no account yet.")).to_be_visible()

    link = re.search(r"http\S+/setup\S+", empty.greeting)
    assert link, empty.greeting
    page.goto(link[0])
    page.get_by_label("Name").fill("Olive Owner")
    page.get_by_label("E-mail").fill(EMAIL)
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Create the account").click()
    invalid = page.get_by_label("Password").evaluate("field => field.validity.tooShort")
    assert invalid, "a password that is too short is not sent"
    page.screenshot(path=SCREENSHOTS / "setup-1440-light-en.png")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    steps = page.get_by_role("listitem").filter(has_text="To do")
    expect(steps).to_have_count(3)
    for action in ("Add a dataset", "Add a model", "Add a machine"):
        expect(steps.get_by_role("link", name=action)).to_be_visible()
    expect(page.get_by_role("button", name="Live", exact=True)).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "overview-first-visit-1440-light-en.png")

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
