"""What one brings, by clicking: columns that are mapped, a model as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.browser.conftest import Pages
from tests.browser.looks import LOCALES, inspect
from tests.browser.watch import Watch
from tests.tiny_model import make_in_child

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def german_jsonl() -> bytes:
    rows = [{"frage": f"Was ist {n}?", "antwort": f"{n} ist {n}.", "nr": n} for n in range(30)]
    return "\n".join(json.dumps(row) for row in rows).encode()


def test_columns_are_mapped_by_hand(page: Page, watch: Watch, hub: HubClient) -> None:
    data = hub.upload_dataset("Fragen", "fragen.jsonl", german_jsonl())
    path = f"/api/v1/datasets/{data['id']}"
    page.goto(f"/datasets/{data['id']}")
    asked = page.get_by_label("prompt", exact=True)
    expect(asked).to_have_value("frage")
    expect(page.get_by_label("completion", exact=True)).to_have_value("antwort")
    page.get_by_role("button", name="is learnt as running text").click()
    expect(page.get_by_label("text", exact=True)).to_have_value("frage")
    page.get_by_role("button", name="asks and").click()
    asked.select_option("antwort")
    page.get_by_label("completion", exact=True).select_option("frage")
    page.get_by_role("button", name="Use this mapping").click()
    expect(asked).to_be_hidden()
    row = hub.wait(path, lambda row: row["status"] == "ready", seconds=60)
    assert row["mapping"] == {"prompt": "antwort", "completion": "frage"}
    assert (row["schema_kind"], row["needs_mapping"]) == ("prompt_completion", False)
    first = page.get_by_role("article").first
    expect(first.get_by_text("0 ist 0.")).to_be_visible()
    watch.settle()


def test_a_model_is_brought_as_files(
    page: Page, watch: Watch, hub: HubClient, tiny: dict[str, Any], tmp_path: Path
) -> None:
    folder = make_in_child(tmp_path / "Brought along")
    (folder / "left out.bin").write_bytes(b"pickle")
    page.goto("/models?add=1")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name="Files").click()
    files = sorted(path for path in folder.iterdir() if path.is_file())
    without_tokenizer = [path for path in files if not path.name.startswith("tokenizer")]
    dialog.get_by_label("Choose files").set_input_files(without_tokenizer)
    dialog.get_by_label("Name").fill("Brought")
    with watch.refused(422, "/models"):
        dialog.get_by_role("button", name="Upload").click()
        expect(dialog.get_by_text("There is no tokenizer")).to_be_visible()
    dialog.get_by_label("Choose files").set_input_files(files)
    dialog.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="Brought", level=1)).to_be_visible()
    expect(page.get_by_text("Ready", exact=True).first).to_be_visible()
    made = next(one for one in hub.pages("/api/v1/models") if one["name"] == "Brought")
    assert (made["source"], made["parameters"]) == ("upload", tiny["parameters"])
    hub.call("DELETE", f"/api/v1/models/{made['id']}")


@pytest.mark.parametrize("language", LOCALES)
def test_their_looks(
    language: str, pages: Pages, appliance: Appliance, session: Any, hub: HubClient
) -> None:
    data = hub.upload_dataset(f"Fragen {language}", "fragen.jsonl", german_jsonl())
    page = pages.open(appliance.url, LOCALES[language], storage_state=session)
    page.goto(f"/datasets/{data['id']}")
    page.get_by_label("prompt", exact=True).wait_for()
    pages.watches[page].settle()
    findings = inspect(page, "dataset-mapping", language, axe=language == "en")
    page.goto("/models?add=1")
    page.get_by_role("dialog").get_by_role("radio").nth(1).click()
    findings += inspect(page, "model-files", language, axe=language == "en")
    assert not findings, "\n".join(findings)
    hub.call("DELETE", f"/api/v1/datasets/{data['id']}")
