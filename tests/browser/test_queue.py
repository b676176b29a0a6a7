"""Waiting jobs are put in order: by keyboard, by mouse, by priority; and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from parsyn.demo.client import HubClient
from tests.browser.conftest import rows_jsonl

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
JOBS = "/api/v1/training-jobs"


@pytest.fixture
def waiting(hub: HubClient, tiny: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Three jobs that want a GPU which nobody has."""
    data = hub.upload_dataset("A few sums", "few.jsonl", rows_jsonl(20))
    made = []
    for name in ("First", "Second", "Third"):
        body = {
            "name": name,
            "dataset_id": data["id"],
            "model_id": tiny["id"],
            "worker_selection": {"mode": "auto", "gpu_type": "H100"},
        }
        job = hub.call("POST", JOBS, body)
        made.append(hub.call("POST", f"{JOBS}/{job['id']}/start"))
    yield made
    for job in made:
        hub.call("POST", f"{JOBS}/{job['id']}/cancel")
        hub.call("DELETE", f"{JOBS}/{job['id']}")


def see(queue: Locator, *order: str) -> None:
    expect(queue.get_by_role("listitem").get_by_role("link")).to_have_text(list(order))


def order_on_the_hub(hub: HubClient) -> list[str]:
    return [item["job"]["name"] for item in hub.call("GET", "/api/v1/queue")["items"]]


def test_the_queue_is_put_in_order(
    page: Page, hub: HubClient, waiting: list[dict[str, Any]]
) -> None:
    page.goto("/training")
    queue = page.locator("section").filter(has=page.get_by_role("heading", name="Waiting"))
    see(queue, "First", "Second", "Third")
    expect(queue.get_by_text("H100").first).to_be_visible()

    handle = queue.get_by_role("button", name="Move Third", exact=True)
    handle.focus()
    page.keyboard.press("ArrowUp")
    see(queue, "First", "Third", "Second")
    expect(page.get_by_text("Third was moved.")).to_be_visible()
    assert order_on_the_hub(hub) == ["First", "Third", "Second"]
    page.get_by_role("button", name="Undo").click()
    see(queue, "First", "Second", "Third")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert order_on_the_hub(hub) == ["First", "Second", "Third"]

    row = queue.get_by_role("listitem").filter(has_text="First")
    handle.drag_to(row)
    see(queue, "Third", "First", "Second")
    expect(page.get_by_text("Third was moved.")).to_be_visible()
    assert order_on_the_hub(hub) == ["Third", "First", "Second"]

    queue.get_by_label("Priority of Third").select_option("low")
    see(queue, "First", "Second", "Third")
    expect(queue.get_by_role("button", name="Move Third up")).to_be_disabled()
    page.get_by_role("link", name="First").first.click()
    expect(page.get_by_role("tab", name="Placement", selected=True)).to_be_visible()
    expect(page.get_by_role("tabpanel").get_by_text("H100").first).to_be_visible()
