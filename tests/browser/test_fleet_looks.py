"""The fleet from its first machine to many: looked at in both languages, themes and widths.

The machines are simulated, since a dozen GPUs are not at hand; the hub and the pages are real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser.conftest import Pages, log_in, rows_jsonl
from tests.browser.fleet import SimulatedFleet
from tests.browser.looks import LOCALES, inspect
from tests.tiny_model import make_in_child

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
JOBS = "/api/v1/training-jobs"
MACHINES = 9
MOST_ROWS_DRAWN = 80


@dataclass(frozen=True)
class Look:
    """A page, and what is done there before it is looked at."""

    name: str
    path: str
    act: Callable[[Page], None] = lambda page: None


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    """An appliance without an agent of its own."""
    running = Appliance(tmp_path_factory.mktemp("hall") / "data")
    running.create_owner()
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def visitor(browser: Browser, hall: Appliance) -> Any:
    """Cookies of its owner."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(f"{hall.url}/login")
    log_in(page)
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture(scope="module")
def guest(hall: Appliance) -> HubClient:
    return hall.client()


def enrolment_key(hub: HubClient, count: int) -> str:
    body = {"name": "Lab", "auto_name_prefix": "gpu", "max_enrollments": count}
    return str(hub.call("POST", "/api/v1/master-keys", body)["key"])


@pytest.fixture(scope="module")
def fleet(hall: Appliance, guest: HubClient) -> Iterator[SimulatedFleet]:
    made = SimulatedFleet(hall.url, enrolment_key(guest, 20), MACHINES, pace=2.0)
    made.start()
    made.leave(MACHINES - 1)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def jobs(
    hall: Appliance,
    guest: HubClient,
    fleet: SimulatedFleet,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, int]:
    """Some run, some wait: the last for a GPU that nobody has."""
    folder = make_in_child(tmp_path_factory.mktemp("models") / "tiny")
    model = hall.import_model(folder, "Tiny")
    data = guest.upload_dataset("Sums", "sums.jsonl", rows_jsonl(60))
    found: dict[str, int] = {}
    for name, gpu in (
        ("Support answers", None),
        ("Contracts in French", None),
        ("Summaries, rank 32", "H100"),
        ("Poems", "H100"),
        ("Short answers", "H100"),
    ):
        body = {
            "name": name,
            "dataset_id": data["id"],
            "model_id": model["id"],
            "worker_selection": {"mode": "auto", "gpu_type": gpu},
        }
        job = guest.call("POST", JOBS, body)
        guest.call("POST", f"{JOBS}/{job['id']}/start")
        found[name] = job["id"]
    for name in ("Support answers", "Contracts in French"):
        guest.wait(f"{JOBS}/{found[name]}", lambda row: row["status"] == "running", seconds=60)
    return found


def find_faults(
    pages: Pages, hall: Appliance, visitor: Any, language: str, looks: list[Look]
) -> str:
    page = pages.open(hall.url, LOCALES[language], storage_state=visitor)
    faults: list[str] = []
    for look in looks:
        page.goto(look.path)
        page.locator("h1").first.wait_for()
        pages.watches[page].settle()
        page.wait_for_function("() => !document.querySelector('.skeleton')")
        look.act(page)
        faults += inspect(page, look.name, language, axe=language == "en")
    return "\n".join(faults)


def first(page: Page, selector: str) -> None:
    page.locator(selector).first.click()


def add_hours(page: Page) -> None:
    form = page.get_by_role("dialog").locator("form")
    form.locator("fieldset").first.get_by_role("button").last.click()
    form.scroll_into_view_if_needed()


def ask_to_remove(page: Page) -> None:
    first(page, "tbody tr button[aria-haspopup=menu]")
    page.get_by_role("menuitem").last.click()


def tick_two(page: Page) -> None:
    for number in range(2):
        page.locator("tbody input[type=checkbox]").nth(number).check()


@pytest.mark.parametrize("language", LOCALES)
def test_before_the_first_machine(
    pages: Pages, hall: Appliance, visitor: Any, language: str
) -> None:
    looks = [
        Look("fleet-empty", "/workers"),
        Look("fleet-add", "/workers?add=1"),
        Look("fleet-commands", "/workers?add=1", lambda page: first(page, "button[type=submit]")),
        Look(
            "fleet-by-hand", "/workers?add=1", lambda page: page.get_by_role("radio").nth(1).click()
        ),
    ]
    assert not find_faults(pages, hall, visitor, language, looks)


@pytest.mark.parametrize("language", LOCALES)
def test_a_fleet_at_work(
    pages: Pages,
    hall: Appliance,
    visitor: Any,
    guest: HubClient,
    jobs: dict[str, int],
    language: str,
) -> None:
    busy = guest.call("GET", f"{JOBS}/{jobs['Support answers']}")["worker_id"]
    running, waits = jobs["Support answers"], jobs["Poems"]
    panel = f"/workers?worker={busy}"
    looks = [
        Look("fleet", "/workers"),
        Look("fleet-bulk", "/workers?status=idle", tick_two),
        Look("fleet-machine", panel),
        Look("fleet-limits", panel, add_hours),
        Look("fleet-remove", "/workers", ask_to_remove),
        Look("queue", "/training"),
        Look("placement", f"/training/{running}?tab=placement"),
        Look("placement-waiting", f"/training/{waits}?tab=placement"),
        Look("timeline", f"/training/{running}?tab=timeline"),
    ]
    assert not find_faults(pages, hall, visitor, language, looks)


def test_a_thousand_machines_scroll(
    pages: Pages, hall: Appliance, visitor: Any, guest: HubClient, fleet: SimulatedFleet
) -> None:
    """Only the rows in sight are drawn, whatever is scrolled, filtered or sorted."""
    for number in range(1000):
        guest.call("POST", "/api/v1/workers", {"name": f"spare-{number:04}"})
    page = pages.open(hall.url, storage_state=visitor)
    page.goto("/workers")
    expect(page.get_by_text("1,009 rows")).to_be_visible()
    rows = page.locator("tbody tr")
    assert rows.count() < MOST_ROWS_DRAWN
    table = page.get_by_role("table")
    table.hover()
    for _ in range(20):
        page.mouse.wheel(0, 2500)
    expect(page.get_by_role("button", name="spare-0999", exact=True)).to_be_visible()
    assert rows.count() < MOST_ROWS_DRAWN
    page.get_by_role("searchbox").fill("spare-07")
    expect(page.get_by_text("100 rows")).to_be_visible()
    page.get_by_role("button", name="Name").click()
    expect(rows.first).to_contain_text("spare-0799")
