"""Shapes are told by whole column names and by content; what has two readings is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsyn.rows.formats import Row, read_file
from parsyn.rows.mapping import BadMapping, plan_rows
from parsyn.rows.messages import normalise
from parsyn.rows.shapes import recognise
from parsyn.wire.states import SchemaKind as K

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
SHARE = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
ASKED = [{"from": "human", "value": "hi"}]


@pytest.mark.parametrize(
    ("row", "kind", "mapping"),
    [
        ({"messages": CHAT}, K.MESSAGES, None),
        ({"messages": CHAT, "tools": [], "id": 7}, K.MESSAGES, None),
        ({"conversations": SHARE, "system": "s"}, K.SHAREGPT, None),
        ({"conversations": CHAT}, K.MESSAGES, {"messages": "conversations"}),
        ({"messages": SHARE}, K.SHAREGPT, {"conversations": "messages"}),
        ({"dialogue": CHAT, "id": "x"}, K.MESSAGES, {"messages": "dialogue"}),
        ({"instruction": "a", "input": "", "output": "b"}, K.ALPACA, None),
        (
            {"Instruction": "a", "Output": "b"},
            K.ALPACA,
            {"instruction": "Instruction", "output": "Output"},
        ),
        ({"instruction": "hi", "output": "hello", "text": "Do: hi\nSaid: hello"}, K.ALPACA, None),
        ({"messages": CHAT, "text": "<u>hi<a>hello"}, K.MESSAGES, None),
        ({"prompt": "a", "completion": "b"}, K.PROMPT_COMPLETION, None),
        ({"prompt": CHAT[:1], "completion": CHAT[1:]}, K.PROMPT_COMPLETION, None),
        ({"prompt": "a", "completion": "b", "label": "sports"}, K.PROMPT_COMPLETION, None),
        ({"text": "a", "meta": {"x": 1}, "url": "u"}, K.TEXT, None),
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, K.PREFERENCE, None),
        (
            {"Prompt": "a", "chosen": "b", "rejected": "c"},
            K.PREFERENCE,
            {"chosen": "chosen", "rejected": "rejected", "prompt": "Prompt"},
        ),
        ({"conversations": ASKED, "chosen": SHARE[1], "rejected": SHARE[1]}, K.PREFERENCE, None),
        ({"chosen": CHAT, "rejected": CHAT}, K.PREFERENCE, None),
        ({"prompt": "a", "completion": "b", "label": True}, K.KTO, None),
        ({"prompt": "a", "completion": "b", "label": "False"}, K.KTO, None),
        ({"messages": CHAT, "kto_tag": False}, K.KTO, {"messages": "messages", "label": "kto_tag"}),
        ({"prompt": "a", "id": 3}, K.PROMPT_ONLY, None),
        ({"prompt": CHAT[:1], "ground_truth": "4"}, K.PROMPT_ONLY, None),
        ({"messages": CHAT, "prompt": "hi"}, K.MESSAGES, None),
        ({"input_ids": [1, 2], "labels": [-100, 2], "attention_mask": [1, 1]}, K.TOKENIZED, None),
        ({"input_ids": "[1, 2]"}, K.TOKENIZED, None),
        ({"messages": '[{"role": "user", "content": "hi"}]'}, K.MESSAGES, None),
    ],
)
def test_one_reading(row: dict[str, Any], kind: K, mapping: dict[str, str] | None) -> None:
    found = recognise(list(row), [row])
    assert (found.schema_kind, found.mapping, found.needs_mapping) == (kind, mapping, False)
    if mapping is not None:
        assert plan_rows(None, mapping, list(row)).schema_kind is kind


@pytest.mark.parametrize(
    ("row", "kinds"),
    [
        ({"messages": CHAT, "text": "something else"}, [K.MESSAGES, K.TEXT]),
        ({"messages": CHAT, "conversations": SHARE}, [K.MESSAGES, K.SHAREGPT]),
        (
            {"instruction": "a", "output": "b", "prompt": "c", "completion": "d"},
            [K.PROMPT_COMPLETION, K.ALPACA],
        ),
        ({"prompt": "a", "completion": "b", "label": 1}, [K.PROMPT_COMPLETION, K.KTO]),
        ({"prompt": "a", "response": "b"}, [K.PROMPT_ONLY, K.PROMPT_COMPLETION]),
        ({"prompt": "a", "answer": "b"}, [K.PROMPT_ONLY, K.PROMPT_COMPLETION]),
        ({"chosen": "a", "rejected": "b", "messages": CHAT}, [K.PREFERENCE, K.MESSAGES]),
        ({"first": CHAT, "second": CHAT}, [K.MESSAGES, K.MESSAGES]),
        ({"input_ids": [1], "text": "a"}, [K.TOKENIZED, K.TEXT]),
    ],
)
def test_two_readings_are_asked(row: dict[str, Any], kinds: list[K]) -> None:
    found = recognise(list(row), [row])
    assert found.schema_kind is K.UNKNOWN
    assert found.needs_mapping
    assert [candidate.schema_kind for candidate in found.candidates] == kinds
    assert "mapping" in found.reasons[0]
    for candidate in found.candidates:
        # Accepting a candidate takes its mapping alone.
        assert plan_rows(None, candidate.mapping, list(row)).schema_kind is candidate.schema_kind


@pytest.mark.parametrize(
    "row",
    [
        {"my_messages_old": "x", "prompt_id": 3},
        {"context": "a", "textual": "b"},
        {"conversations": "not turns"},
        {"messages": [{"speaker": "a", "says": "b"}]},
        {"input_ids": "one two"},
        {"n": 1},
        {},
    ],
)
def test_a_part_of_a_name_or_the_wrong_content_is_not_enough(row: dict[str, Any]) -> None:
    found = recognise(list(row), [row])
    assert (found.schema_kind, found.needs_mapping) == (K.UNKNOWN, True)


def test_proposals_for_columns_that_fit_no_shape() -> None:
    row = {"id": 7, "answer": "4", "question": "2+2?"}
    proposals = recognise(list(row), [row]).candidates
    assert [(p.schema_kind, p.mapping) for p in proposals] == [
        (K.PROMPT_COMPLETION, {"prompt": "question", "completion": "answer"}),
        (K.TEXT, {"text": "answer"}),
    ]


def test_a_few_bad_rows_do_not_hide_the_shape() -> None:
    rows = [{"messages": CHAT}] * 8 + [{"messages": "broken"}, {"messages": None}]
    assert recognise(["messages"], rows).schema_kind is K.MESSAGES


@pytest.mark.parametrize(
    ("name", "kind", "rows"),
    [
        ("alpaca_en_demo.json", K.ALPACA, 999),
        ("identity.json", K.ALPACA, 91),
        ("glaive_toolcall_en_demo.json", K.SHAREGPT, 300),
        ("dpo_en_demo.json", K.PREFERENCE, 300),
        ("kto_en_demo.json", K.KTO, 300),
        ("c4_demo.jsonl", K.TEXT, 300),
    ],
)
def test_real_files_are_recognised_and_every_row_is_usable(
    shared_file: Callable[[str], Path], name: str, kind: K, rows: int
) -> None:
    read = [item for item in read_file(shared_file(name), name) if isinstance(item, Row)]
    found = recognise(list(read[0].values), [row.values for row in read[:200]])
    assert (found.schema_kind, found.needs_mapping, len(read)) == (kind, False, rows)
    plan = plan_rows(found.schema_kind, found.mapping)
    for row in read:
        example = normalise(row.values, plan)
        assert example.text or example.messages
        if kind in (K.ALPACA, K.KTO):
            assert example.messages[-1]["role"] == "assistant"


@pytest.mark.parametrize(
    ("mapping", "columns", "kind"),
    [
        ({"prompt": "q", "completion": "a"}, ["q", "a"], K.PROMPT_COMPLETION),
        ({"completion": "a"}, ["prompt", "a"], K.PROMPT_COMPLETION),
        ({"messages": "conv", "role_key": "who"}, ["conv"], K.MESSAGES),
        ({"messages": "conv", "label": "ok"}, ["conv", "ok"], K.KTO),
        ({"prompt": "p", "chosen": "c", "rejected": "r"}, ["p", "c", "r"], K.PREFERENCE),
        ({"text": "body"}, ["body", "title"], K.TEXT),
        ({"prompt": "q"}, ["q"], K.PROMPT_ONLY),
        ({"instruction": "q", "output": "a", "input": "c"}, ["q", "a", "c"], K.ALPACA),
    ],
)
def test_a_mapping_alone_decides_the_shape(
    mapping: dict[str, str], columns: list[str], kind: K
) -> None:
    assert plan_rows(None, mapping, columns).schema_kind is kind


@pytest.mark.parametrize(
    ("kind", "mapping", "columns", "words", "key"),
    [
        (
            None,
            {"prompt": "q", "completion": "missing"},
            ["q"],
            'no column "missing"',
            "completion",
        ),
        (None, {"colour": "q"}, ["q"], "fits no shape", None),
        (K.ALPACA, {"instruktion": "q"}, ["q"], 'Did you mean "instruction"?', "instruktion"),
        (K.KTO, {"prompt": "q", "completion": "a"}, ["q", "a"], "also needs label", None),
        (None, {}, ["q"], "fits no shape", None),
        (K.UNKNOWN, None, ["q"], "fit no shape", None),
    ],
)
def test_a_mapping_that_does_not_fit_says_why(
    kind: K | None, mapping: dict[str, str] | None, columns: list[str], words: str, key: str | None
) -> None:
    with pytest.raises(BadMapping) as caught:
        plan_rows(kind, mapping, columns)
    assert words in caught.value.message
    assert caught.value.key == key
