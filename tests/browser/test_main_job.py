"""The main job by clicking: from a file to an answer, watched live."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from parsyn.demo.client import HubClient
from tests.browser.conftest import TIMEOUT, rows_jsonl
from tests.browser.tabs import open_tab
from tests.browser.watch import Watch

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
JOB_TIMEOUT = 240_000
STEPS = 60


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A file of three parts."""
    path = tmp_path / "numbers.jsonl"
    path.write_bytes(rows_jsonl(1200))
    assert 2 * 65536 < path.stat().st_size <= 3 * 65536
    return path


def upload(page: Page, file: Path, name: str) -> None:
    page.goto("/datasets")
    page.get_by_role("button", name="Add a dataset").first.click()
    dialog = page.get_by_role("dialog", name="Add a dataset")
    with page.expect_file_chooser() as chooser:
        dialog.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(file)
    expect(dialog.get_by_text(file.name)).to_be_visible()
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_role("button", name="Upload").click()


def test_from_a_file_to_a_model(
    page: Page, watch: Watch, hub: HubClient, tiny: dict[str, Any], numbers: Path
) -> None:
    small = hub.upload_dataset("Few numbers", "few.jsonl", rows_jsonl(30))
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    upload(page, numbers, "Numbers")
    page.get_by_role("link", name="Numbers", exact=True).click()
    expect(page.get_by_role("heading", name="Numbers", level=1)).to_be_visible()
    expect(page.get_by_text("Ready", exact=True)).to_be_visible()
    assert sum(bool(re.match(r"PUT .*/parts/[123]$", one)) for one in sent) == 3
    look_at_the_dataset(page)

    page.get_by_role("link", name="Train with this").click()
    fill_in_the_training(page, watch)
    watch_it_train(page)
    look_at_the_run(page)

    page.get_by_role("link", name="Open the model").click()
    look_where_it_comes_from(page)
    evaluate(page, small["name"])
    export(page)
    chat(page)


def look_at_the_dataset(page: Page) -> None:
    expect(page.get_by_text("1,200 rows")).to_be_visible()
    first = page.get_by_role("article").first
    expect(first.get_by_text("Assistant", exact=True)).to_be_visible()
    expect(first.get_by_text("0 plus 0 is 0.")).to_be_visible()
    page.get_by_role("radio", name="Raw").click()
    expect(first.get_by_text('"role": "assistant"')).to_be_visible()
    page.get_by_role("radio", name="Rendered").click()
    expect(first.get_by_text(re.compile(r"\d+ tokens, \d+ trained"))).to_be_visible()
    expect(first.get_by_text("<|im_start|>").first).to_be_visible()
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_text("11–20 of 1,200")).to_be_visible()
    statistics = open_tab(page, "Statistics")
    expect(statistics.get_by_text("Exact duplicates")).to_be_visible()
    expect(statistics.get_by_text("Length of the rows in tokens")).to_be_visible()
    report = open_tab(page, "Report")
    expect(report.get_by_text("No problems: every row can be used.")).to_be_visible()


def fill_in_the_training(page: Page, watch: Watch) -> None:
    expect(page.get_by_label("Dataset", exact=True)).to_have_value(re.compile(r"\d+"))
    page.get_by_label("Base model").select_option(label="Tiny")
    page.get_by_label("Name").fill("By clicking")
    page.get_by_text("Advanced settings").click()
    unknown = page.get_by_label("Push to the Hub")
    unknown.fill("someone/something")
    with watch.refused(422, "/training-jobs"):
        page.get_by_role("button", name="Start training").click()
        expect(unknown).to_have_attribute("aria-invalid", "true")
    expect(unknown).to_have_accessible_description(re.compile("agents push nothing to the Hub"))
    unknown.fill("")
    length = page.get_by_label("Longest sequence")
    length.fill("100000")
    with watch.refused(422, "/training-jobs"):
        page.get_by_role("button", name="Start training").click()
        expect(length).to_have_attribute("aria-invalid", "true")
    expect(length).to_have_accessible_description(re.compile("context"))
    length.fill("128")
    page.get_by_label("Learning rate", exact=True).fill("0")
    expect(page.get_by_text("More than 0.").or_(page.get_by_text("above 0"))).to_be_visible()
    for name, value in {
        "Learning rate": "0.005",
        "Batch size": "4",
        "Gradient accumulation": "1",
        "Most steps": str(STEPS),
        "Evaluate every": "20",
        "Save every": "20",
        "Sample answers": "2",
        "Length of a sample answer": "8",
    }.items():
        page.get_by_label(name, exact=True).fill(value)
    page.get_by_role("button", name="Start training").click()
    expect(page.get_by_role("heading", name="By clicking", level=1)).to_be_visible()


def chart(page: Page, title: str) -> Locator:
    return page.get_by_role("figure").filter(has=page.get_by_role("img", name=title, exact=True))


def losses(page: Page) -> int:
    """How many training losses are drawn, by the chart's own CSV."""
    with page.expect_download() as download:
        chart(page, "Loss").get_by_role("button", name="Download as CSV").click()
    rows = download.value.path().read_text().splitlines()
    return sum(row.startswith("Training loss,") for row in rows)


def watch_it_train(page: Page) -> None:
    page.evaluate("() => { window.sameDocument = true }")
    progress = page.get_by_role("progressbar")
    expect(progress).to_be_visible(timeout=JOB_TIMEOUT)
    loss = chart(page, "Loss")
    csv = loss.get_by_role("button", name="Download as CSV")
    csv.wait_for(timeout=JOB_TIMEOUT)
    before = losses(page)
    assert 0 < before < STEPS, "the chart is there before the run ends"
    expect(page.get_by_text(re.compile(rf"step \d+ of {STEPS}"))).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    done = page.get_by_text("Done", exact=True)
    done.wait_for(timeout=JOB_TIMEOUT)
    expect(page.get_by_role("link", name="Open the model")).to_be_visible()
    assert losses(page) == STEPS, "the chart grew to the end"
    assert page.evaluate("window.sameDocument"), "all of this came without a reload"


def look_at_the_run(page: Page) -> None:
    log = open_tab(page, "Log").get_by_role("log")
    expect(log.locator("time").first).to_be_visible()
    samples = open_tab(page, "Samples")
    expect(samples.get_by_text(f"Step {STEPS}").first).to_be_visible()
    checkpoints = open_tab(page, "Checkpoints")
    for step in ("Step 20", f"Step {STEPS}"):
        expect(checkpoints.get_by_text(step)).to_be_visible()
    expect(checkpoints.get_by_text("Best", exact=True)).to_be_visible()
    timeline = open_tab(page, "Timeline")
    for state in ("Waiting", "Running", "Done"):
        expect(timeline.get_by_role("listitem").filter(has_text=state).first).to_be_visible()
    expect(open_tab(page, "Configuration").get_by_text("max_steps")).to_be_visible()
    page.reload()
    expect(page.get_by_text("max_steps")).to_be_visible()


def look_where_it_comes_from(page: Page) -> None:
    lineage = page.get_by_role("group", name="Where it comes from")
    for name in ("Tiny", "Numbers", "By clicking"):
        expect(lineage.get_by_role("link", name=name).first).to_be_visible()


def evaluate(page: Page, dataset: str) -> None:
    open_tab(page, "Evaluations").get_by_label("On which data").select_option(label=dataset)
    page.get_by_role("button", name="Evaluate").click()
    result = page.get_by_role("article").filter(has_text=dataset)
    expect(result.get_by_text("lower is better").first).to_be_visible(timeout=JOB_TIMEOUT)
    expect(result.get_by_text("Done", exact=True)).to_be_visible()
    expect(result.get_by_text("perplexity", exact=True)).to_be_visible()


def export(page: Page) -> None:
    open_tab(page, "Exports")
    page.get_by_label("Quantization").or_(page.get_by_label("Quantisation")).select_option("Q8_0")
    page.get_by_role("button", name="Export", exact=True).click()
    card = page.get_by_role("article").filter(has_text="GGUF")
    expect(card.get_by_text("Done", exact=True)).to_be_visible(timeout=JOB_TIMEOUT)
    with page.expect_download() as download:
        card.get_by_role("link", name=re.compile(r"\.gguf$")).click()
    assert download.value.path().read_bytes()[:4] == b"GGUF"


def chat(page: Page) -> None:
    page.get_by_role("link", name="Chat").last.click()
    page.get_by_role("button", name="How the model answers").click()
    settings = page.get_by_role("dialog")
    settings.get_by_label("Temperature").fill("0")
    settings.get_by_label("Most tokens").fill("24")
    settings.get_by_role("button", name="Apply").click()
    page.get_by_label("Write a message").fill("Row 3: what is 1 plus 2?")
    page.get_by_role("button", name="Send").click()
    answer = page.get_by_role("article").filter(has_text="Assistant")
    expect(answer.get_by_text(re.compile(r"\d+ tokens?"))).to_be_visible(timeout=JOB_TIMEOUT)
    expect(answer.get_by_text("By clicking")).to_be_visible()

    page.get_by_role("button", name="How the model answers").click()
    settings.get_by_label("Most tokens").fill("400")
    settings.get_by_label("Temperature").fill("2")
    settings.get_by_role("button", name="Apply").click()
    stop_an_answer(page)


CLICK_STOP_WHILE_IT_GROWS = """() => {
  const watch = new MutationObserver(() => {
    const growing = document.querySelector("article[aria-busy=true] p")
    const stop = document.querySelector("button[aria-label=Stop]")
    if (!growing?.textContent || !stop) return
    watch.disconnect()
    stop.click()
  })
  watch.observe(document.body, { subtree: true, childList: true, characterData: true })
}"""


def stop_an_answer(page: Page) -> None:
    """The tiny model may end by itself before a hand can click: the page clicks, and once more."""
    answers = page.get_by_role("article").filter(has_text="Assistant")
    for _ in range(5):
        before = answers.count()
        page.evaluate(CLICK_STOP_WHILE_IT_GROWS)
        page.get_by_label("Write a message").fill("Count as far as you can.")
        page.get_by_label("Write a message").press("Enter")
        expect(answers).to_have_count(before + 1, timeout=JOB_TIMEOUT)
        expect(page.locator("article[aria-busy=true]")).to_have_count(0)
        expect(answers.last.get_by_role("button", name="Good answer")).to_be_visible()
        if page.get_by_text("stopped").count():
            return
    raise AssertionError("no answer was stopped")


def test_a_running_job_is_cancelled(page: Page, hub: HubClient, tiny: dict[str, Any]) -> None:
    data = hub.upload_dataset("To cancel", "cancel.jsonl", rows_jsonl(40))
    page.goto(f"/training/new?dataset={data['id']}&model={tiny['id']}")
    page.get_by_text("Advanced settings").click()
    page.get_by_label("Most steps").fill("100000")
    page.get_by_label("Epochs").fill("1000")
    page.get_by_role("button", name="Start training").click()
    expect(page.get_by_text(re.compile(r"step \d+ of"))).to_be_visible(timeout=JOB_TIMEOUT)
    page.goto("/")
    running = page.get_by_role("article").filter(has_text="Tiny · To cancel")
    expect(running.get_by_role("progressbar")).to_be_visible()
    running.get_by_role("link").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible(timeout=JOB_TIMEOUT)
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_an_interrupted_upload_goes_on(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "again.jsonl"
    file.write_bytes(rows_jsonl(1200))
    other = tmp_path / "other.jsonl"
    other.write_bytes(rows_jsonl(1100))
    questions: list[str] = []

    def leave(dialog: Any) -> None:
        questions.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.route("**/parts/3", lambda route: None)
    upload(page, file, "Interrupted")
    expect(page.get_by_text(re.compile(r"^131.* of "))).to_be_visible()
    page.reload()
    page.unroute_all(behavior="ignoreErrors")
    assert questions == ["beforeunload"], "one is asked before an upload is lost"
    expect(page.get_by_text("The upload of “Interrupted” was interrupted")).to_be_visible()

    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    page.get_by_label("Pick the file").set_input_files(other)
    expect(page.get_by_text("This is another file than again.jsonl")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_label("Pick the file").set_input_files(file)
    row = page.get_by_role("row").filter(has_text="Interrupted")
    expect(row.get_by_text("Ready")).to_be_visible(timeout=TIMEOUT)
    parts = [one.rpartition("/")[2] for one in sent if one.startswith("PUT")]
    assert parts == ["3"], "only what was missing is sent"
