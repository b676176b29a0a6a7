"""What a person is shown of a file, page by page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parsyn.rows.preview import preview, render
from parsyn.rows.requests import Preview, PreviewRequest, RenderRequest, Source

Write = Callable[[str, bytes | str], Path]
ROWS = (
    '{"prompt": "a", "completion": "b"}\nbroken\n'
    '{"prompt": "c", "completion": ""}\n{"prompt": "d", "completion": "e"}\n'
)


def page(path: Path, *, model: Path | None = None, **request: Any) -> Preview:
    folder = None if model is None else str(model)
    return preview(PreviewRequest(Source(str(path), path.name), model_dir=folder, **request))


def test_good_and_bad_rows_in_their_places(write: Write) -> None:
    shown = page(write("a.jsonl", ROWS)).items
    assert [(row.row, row.line) for row in shown] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert shown[0].raw == {"prompt": "a", "completion": "b"}
    assert shown[0].messages == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]
    assert shown[0].problem is None
    assert (shown[1].raw, shown[1].problem) == (
        None,
        "This is not valid JSON: expecting value at character 1. Repair the row.",
    )
    assert shown[2].raw == {"prompt": "c", "completion": ""}
    assert '"completion" is empty' in (shown[2].problem or "")


def test_pages(write: Write) -> None:
    path = write("a.jsonl", "".join(f'{{"text": "{n}"}}\n' for n in range(500)))
    assert [row.row for row in page(path, offset=300, limit=3).items] == [301, 302, 303]
    assert page(path, offset=500).items == []


def test_the_tokens_of_a_model(write: Write, model_dir: Path) -> None:
    shown = page(write("a.jsonl", ROWS), model=model_dir)
    assert shown.template == "model"
    row = shown.items[0]
    assert row.rendered == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
    assert row.tokens is not None
    assert "".join(token.text for token in row.tokens) == row.rendered
    assert [token.text for token in row.tokens if token.trained] == ["b", "<|im_end|>"]
    assert shown.items[1].tokens is None
    (model_dir / "chat_template.jinja").unlink()
    assert page(write("a.jsonl", ROWS), model=model_dir).template == "default"


def test_a_row_that_the_template_refuses_is_a_bad_row(write: Write, model_dir: Path) -> None:
    (model_dir / "chat_template.jinja").write_text(
        "{{ raise_exception('no ' ~ messages[0].content) }}"
    )
    assert "no a" in (page(write("a.jsonl", ROWS), model=model_dir).items[0].problem or "")


def test_preferences_show_both_sides_and_unknown_shapes_the_raw_row(write: Write) -> None:
    row = {"prompt": "a", "chosen": "b", "rejected": "c"}
    shown = page(write("a.jsonl", json.dumps(row))).items[0]
    assert shown.messages == [{"role": "user", "content": "a"}]
    assert shown.chosen == [{"role": "assistant", "content": "b"}]
    assert shown.rejected == [{"role": "assistant", "content": "c"}]
    shown = page(write("b.csv", "x,y\n1,2\n3,4\n")).items[0]
    assert (shown.raw, shown.messages, shown.problem) == ({"x": "1", "y": "2"}, None, None)


def test_long_values_are_shortened_for_the_page_only(write: Write, model_dir: Path) -> None:
    row = {"text": "word " * 40_000, "more": ["x"] * 100_000}
    shown = page(write("a.jsonl", json.dumps(row)), model=model_dir).items[0]
    assert shown.raw["text"].endswith("…")
    assert len(json.dumps(shown.raw)) < 100_000
    assert shown.rendered is not None
    assert shown.rendered.endswith("…")
    assert shown.tokens is not None
    assert len(shown.tokens) == 8000


def test_a_huge_row_is_shown_without_tokens(write: Write, model_dir: Path) -> None:
    path = write("a.jsonl", json.dumps({"text": "word " * 400_000}) + '\n{"text": "small"}\n')
    huge, small = page(path, model=model_dir).items
    assert (huge.tokens, huge.problem) == (None, None)
    assert small.tokens is not None


def test_a_conversation_as_the_model_sees_it(model_dir: Path) -> None:
    chat = [{"role": "user", "content": "hi"}]
    shown = render(RenderRequest(str(model_dir), chat))
    assert shown.text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert shown.template == "model"


def test_a_real_tool_conversation(shared_file: Callable[[str], Path], model_dir: Path) -> None:
    path = shared_file("glaive_toolcall_en_demo.json")
    shown = page(path, model=model_dir, limit=3).items[0]
    assert shown.tools is not None
    assert shown.tools[0]["function"]["name"] == "search_recipes"
    assert shown.messages is not None
    assert shown.messages[3]["tool_calls"][0]["function"]["name"] == "search_recipes"
    assert shown.tokens is not None
    learnt = "".join(token.text for token in shown.tokens if token.trained)
    assert '"name": "search_recipes", "arguments": {"ingredients": ["chicken"' in learnt
    assert 'Bell Pepper Stir Fry", "ingredients"' not in learnt
