"""A real appliance and one Chromium for all tests of this folder; both end with the folder.

Package scope, not session: Playwright's loop counts as running, and async tests follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from parsyn.demo.client import HubClient
from tests.appliance import EMAIL, PASSWORD, Appliance
from tests.browser.watch import Watch
from tests.tiny_model import make_in_child

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "screenshots"
TIMEOUT = 60_000
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PARTS = {"PARSYN_STORAGE_PART_BYTES": "65536"}
NewPage = Callable[..., Page]
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    running = Appliance(tmp_path_factory.mktemp("browser") / "data", agent=True, env=PARTS)
    running.create_owner()
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="package")
def hub(appliance: Appliance) -> HubClient:
    return appliance.client()


@pytest.fixture(scope="package")
def tiny(
    appliance: Appliance, hub: HubClient, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The tiny model as the hub knows it; its worker is online."""
    folder = make_in_child(tmp_path_factory.mktemp("models") / "tiny")
    made = appliance.import_model(folder, "Tiny")
    hub.wait("/api/v1/workers/summary", lambda row: row["online"] >= 1, seconds=120)
    found: dict[str, Any] = hub.call("GET", f"/api/v1/models/{made['id']}")
    return found


@pytest.fixture(scope="package")
def session(browser: Browser, appliance: Appliance) -> Any:
    """Cookies of the owner, who logged in once through the login page."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.set_default_timeout(TIMEOUT)
    page.goto(f"{appliance.url}/login")
    log_in(page)
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    state = context.storage_state()
    context.close()
    return state


def log_in(page: Page, password: str = PASSWORD, email: str = EMAIL) -> None:
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


class Pages:
    """Opens watched pages, and closes them all."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.contexts: list[BrowserContext] = []
        self.watches: dict[Page, Watch] = {}

    def open(self, url: str, locale: str = "en-US", **options: Any) -> Page:
        context = self.browser.new_context(
            base_url=url, locale=locale, viewport={"width": 1440, "height": 900}, **options
        )
        context.set_default_timeout(TIMEOUT)
        # A language that was chosen here holds before the account's.
        context.add_init_script(f"localStorage['parsyn.language'] ??= {locale[:2]!r}")
        self.contexts.append(context)
        page = context.new_page()
        self.watches[page] = Watch(page)
        return page

    def close(self, picture: Path | None) -> None:
        for number, page in enumerate(self.watches):
            if picture and not page.is_closed():
                page.screenshot(path=picture.with_stem(f"{picture.stem}-{number}"))
        for context in self.contexts:
            context.close()


@pytest.fixture
def pages(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Pages]:
    """Pages without a session. What they did wrong fails the test when it ends."""
    opened = Pages(browser)
    yield opened
    failed = request.node.stash.get(FAILED, False)
    opened.close(SCREENSHOTS / f"failed-{request.node.originalname}.png" if failed else None)
    for watch in opened.watches.values():
        watch.verify()


@pytest.fixture
def page(pages: Pages, appliance: Appliance, session: Any) -> Page:
    """A page of the owner, in English, 1440 px wide."""
    return pages.open(appliance.url, storage_state=session)


@pytest.fixture
def watch(pages: Pages, page: Page) -> Watch:
    return pages.watches[page]


def rows_jsonl(count: int) -> bytes:
    """Question-and-answer rows in the `messages` shape, about 140 bytes each."""
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"Row {n}: what is {n % 97} plus {n % 89}?"},
                {"role": "assistant", "content": f"{n % 97} plus {n % 89} is {n % 97 + n % 89}."},
            ]
        }
        for n in range(count)
    ]
    return ("\n".join(json.dumps(row) for row in rows) + "\n").encode()
