"""Chat by clicking: changed questions, versions of answers, opinions, and two models at once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser import stage
from tests.browser.conftest import Pages
from tests.browser.looks import LOCALES, inspect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
ANSWER_TIMEOUT = 120_000


@pytest.fixture(scope="module")
def tuned(hub: HubClient, tiny: dict[str, Any]) -> dict[str, Any]:
    """A fine-tune of the tiny model."""
    job = stage.completed_job(hub, tiny)
    found: dict[str, Any] = hub.call("GET", f"/api/v1/models/{job['result_model_id']}")
    return found


def set_parameters(page: Page) -> None:
    page.get_by_role("button", name="How the model answers").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Most tokens").fill("12")
    dialog.get_by_label("Temperature").fill("0")
    dialog.get_by_role("button", name="Apply").click()
    dialog.wait_for(state="hidden")


def ask(page: Page, text: str) -> None:
    page.get_by_label("Write a message").fill(text)
    page.get_by_label("Write a message").press("Enter")


def answers(page: Page) -> Locator:
    return page.get_by_role("article").filter(has_text=re.compile(r"\d+ tokens?"))


def questions(page: Page) -> list[str]:
    found = page.get_by_role("article").filter(has_text=re.compile(r"^User"))
    return [text.removeprefix("User").strip().split("\n")[0] for text in found.all_inner_texts()]


def test_a_question_is_changed_and_both_branches_stay(
    page: Page, hub: HubClient, tiny: dict[str, Any]
) -> None:
    page.goto(f"/chat?model={tiny['id']}")
    set_parameters(page)
    ask(page, "What is 1 plus 1?")
    expect(answers(page)).to_have_count(1, timeout=ANSWER_TIMEOUT)
    ask(page, "And 2 plus 2?")
    expect(answers(page)).to_have_count(2, timeout=ANSWER_TIMEOUT)

    first = page.get_by_role("article").first
    first.hover()
    first.get_by_role("button", name="Change the question").click()
    editor = page.get_by_role("textbox", name="Change the question")
    editor.fill("What is 5 plus 5?")
    page.get_by_role("button", name="Send").first.click()
    versions = page.get_by_role("group", name="Versions")
    expect(versions).to_contain_text("2 of 2", timeout=ANSWER_TIMEOUT)
    expect(answers(page)).to_have_count(1)
    assert questions(page) == ["What is 5 plus 5?"]
    versions.get_by_role("button", name="Earlier version").click()
    expect(answers(page)).to_have_count(2)
    assert questions(page) == ["What is 1 plus 1?", "And 2 plus 2?"]

    answers(page).first.get_by_role("button", name="Answer again").click()
    expect(page.get_by_role("group", name="Versions")).to_have_count(2, timeout=ANSWER_TIMEOUT)
    good = answers(page).last.get_by_role("button", name="Good answer")
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")
    page.reload()
    talk = hub.call("GET", f"/api/v1/conversations/{page.url.rsplit('/', 1)[1]}")
    assert len(talk["messages"]) == 7
    assert [one["rating"] for one in talk["messages"] if one["rating"]] == [1]
    expect(page.get_by_role("button", name="Good answer").last).to_have_attribute(
        "aria-pressed", "true"
    )


def test_base_and_tuned_answer_side_by_side(
    page: Page, tiny: dict[str, Any], tuned: dict[str, Any]
) -> None:
    page.goto(f"/chat?model={tuned['id']}")
    page.get_by_role("button", name="Compare side by side").click()
    expect(page.get_by_label("Model A", exact=True)).to_have_value(str(tiny["id"]))
    expect(page.get_by_label("Model B", exact=True)).to_have_value(str(tuned["id"]))
    set_parameters(page)
    ask(page, "Row 3: what is 1 plus 2?")
    for side, name in (("A", tiny["name"]), ("B", tuned["name"])):
        answer = page.get_by_role("region", name=f"Answer {side} of {name}")
        expect(answer.get_by_text(re.compile(r"\d+ tokens?"))).to_be_visible(timeout=ANSWER_TIMEOUT)
    ask(page, "And 2 plus 2?")
    expect(page.get_by_text(re.compile(r"\d+ tokens?"))).to_have_count(4, timeout=ANSWER_TIMEOUT)
    page.get_by_role("button", name="Begin anew").click()
    expect(page.get_by_text("Ask both models the same")).to_be_visible()


def test_a_deleted_conversation_is_taken_back(
    page: Page, hub: HubClient, tiny: dict[str, Any]
) -> None:
    made = hub.call("POST", "/api/v1/conversations", {"model_id": tiny["id"], "title": "Too hasty"})
    page.goto(f"/chat/{made['id']}")
    entry = page.get_by_role("link", name="Too hasty")
    entry.hover()
    page.get_by_role("button", name="Delete Too hasty").click()
    expect(entry).to_be_hidden()
    page.wait_for_url(re.compile(r"/chat$"))
    page.get_by_role("button", name="Undo").click()
    expect(entry).to_be_visible()
    page.get_by_role("button", name="Delete Too hasty").click()
    page.goto("/")
    hub.wait("/api/v1/conversations", lambda row: made["id"] not in ids_of(row), seconds=30)


def ids_of(page: dict[str, Any]) -> list[int]:
    return [one["id"] for one in page["items"]]


@pytest.mark.parametrize("language", LOCALES)
def test_its_looks(
    language: str,
    pages: Pages,
    appliance: Appliance,
    session: Any,
    hub: HubClient,
    tiny: dict[str, Any],
    tuned: dict[str, Any],
) -> None:
    talk = stage.conversation(hub, tiny["id"])
    path = f"/api/v1/conversations/{talk['id']}/messages"
    for body in (
        {"content": "What is 9 plus 9?", "parent_id": None, "params": {"max_tokens": 16}},
        {"regenerate": True, "params": {"max_tokens": 16, "seed": 3, "temperature": 1}},
    ):
        with hub.http.stream("POST", path, json=body) as answer:
            answer.read()
    page = pages.open(appliance.url, LOCALES[language], storage_state=session)
    page.goto(f"/chat/{talk['id']}")
    page.get_by_role("group").nth(1).wait_for()
    pages.watches[page].settle()
    findings = inspect(page, "chat-versions", language, axe=language == "en")
    page.goto(f"/chat/compare?a={tiny['id']}&b={tuned['id']}")
    page.locator("textarea").fill("What is 3 plus 4?")
    page.locator("textarea").press("Enter")
    expect(page.get_by_text(re.compile(r"\d+ (token|jeton)"))).to_have_count(
        2, timeout=ANSWER_TIMEOUT
    )
    findings += inspect(page, "chat-compare", language, axe=language == "en")
    assert not findings, "\n".join(findings)
