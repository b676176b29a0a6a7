"""Rows of each shape become messages, or say what is wrong with which turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsyn.rows.formats import Row, read_file
from parsyn.rows.mapping import SHAPES, Plan, plan_rows
from parsyn.rows.messages import MASKED, Example, normalise
from parsyn.rows.problems import BadRow
from parsyn.rows.problems import ProblemCode as P
from parsyn.rows.shapes import recognise
from parsyn.wire.states import SchemaKind as K

U = {"role": "user", "content": "hi"}
A = {"role": "assistant", "content": "hello"}
CALL = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}


def example(kind: K, row: dict[str, Any], **mapping: str) -> Example:
    return normalise(row, plan_rows(kind, mapping))


def test_messages_with_tools_weights_parts_and_nulls() -> None:
    row = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            {
                "role": "assistant",
                "content": None,
                "weight": 0,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
                    }
                ],
            },
            {"role": "tool", "content": "cold", "tool_call_id": "c1", "name": "weather"},
            {"role": "assistant", "content": "Cold.", "reasoning_content": "hm", "audio": None},
        ],
        "tools": [{"name": "weather", "parameters": {}}],
    }
    found = example(K.MESSAGES, row)
    assert found.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a\nb"},
        {"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": "c1"}], "weight": 0},
        {"role": "tool", "content": "cold", "tool_call_id": "c1", "name": "weather"},
        {"role": "assistant", "content": "Cold.", "reasoning_content": "hm"},
    ]
    assert found.tools == [{"type": "function", "function": {"name": "weather", "parameters": {}}}]


def test_sharegpt_calls_and_observations() -> None:
    call = json.dumps({"name": "weather", "arguments": {"city": "Oslo"}})
    row = {
        "system": "Be brief.",
        "conversations": [
            {"from": "human", "value": "hi"},
            {"from": "gpt", "value": "One moment."},
            {"from": "function_call", "value": call},
            {"from": "function_call", "value": call},
            {"from": "observation", "value": "cold"},
            {"from": "gpt", "value": "Cold."},
        ],
        "tools": "[]",
    }
    found = example(K.SHAREGPT, row)
    assert found.messages == [
        {"role": "system", "content": "Be brief."},
        U,
        {"role": "assistant", "content": "One moment.", "tool_calls": [CALL, CALL]},
        {"role": "tool", "content": "cold"},
        {"role": "assistant", "content": "Cold."},
    ]
    assert found.tools is None


def test_alpaca_with_input_history_and_system() -> None:
    row = {
        "instruction": "Translate.",
        "input": "cat",
        "output": "chat",
        "system": "Speak French.",
        "history": [["hi", "hello"]],
    }
    assert example(K.ALPACA, row).messages == [
        {"role": "system", "content": "Speak French."},
        U,
        A,
        {"role": "user", "content": "Translate.\ncat"},
        {"role": "assistant", "content": "chat"},
    ]
    bare = {"instruction": "hi", "input": None, "output": "hello", "history": None, "system": ""}
    assert example(K.ALPACA, bare).messages == [U, A]


def test_prompt_completion_as_text_as_turns_and_as_json_that_is_only_text() -> None:
    found = example(K.PROMPT_COMPLETION, {"prompt": "hi", "completion": "hello"})
    assert (found.messages, found.plain) == ([U, A], ("hi", "hello"))
    found = example(K.PROMPT_COMPLETION, {"prompt": [U], "completion": [A]})
    assert (found.messages, found.plain) == ([U, A], None)
    extracted = '{"name": "Ada", "born": 1815}'
    found = example(K.PROMPT_COMPLETION, {"prompt": "hi", "completion": extracted})
    assert found.plain == ("hi", extracted)
    assert found.messages[-1]["content"] == extracted


def test_preference_with_a_prompt_beside_before_or_inside_the_answers() -> None:
    other = {"role": "assistant", "content": "no"}
    beside = example(K.PREFERENCE, {"prompt": "hi", "chosen": "hello", "rejected": "no"})
    before = example(
        K.PREFERENCE,
        {
            "conversations": [{"from": "human", "value": "hi"}],
            "chosen": {"from": "gpt", "value": "hello"},
            "rejected": {"from": "gpt", "value": "no"},
        },
    )
    inside = example(K.PREFERENCE, {"prompt": "hi", "chosen": [U, A], "rejected": [U, other]})
    assert beside == before == inside
    assert (beside.messages, beside.chosen, beside.rejected) == ([U], [A], [other])


@pytest.mark.parametrize(
    ("said", "label"), [(True, True), ("false", False), (1, True), ("0", False)]
)
def test_kto_labels(said: Any, label: bool) -> None:
    assert example(K.KTO, {"messages": [U, A], "label": said}).label is label
    found = example(
        K.KTO, {"prompt": "hi", "completion": "hello", "kto_tag": said}, label="kto_tag"
    )
    assert (found.kind, found.label, found.messages) == (K.KTO, label, [U, A])


def test_text_prompts_and_token_ids() -> None:
    assert example(K.TEXT, {"body": "words"}, text="body").text == "words"
    assert example(K.PROMPT_ONLY, {"prompt": "hi", "answer": 4}).messages == [U]
    found = example(
        K.TOKENIZED, {"input_ids": [5, 6, 0], "labels": [MASKED, 6, 0], "attention_mask": [1, 1, 0]}
    )
    assert (found.input_ids, found.labels) == ([5, 6], [MASKED, 6])
    assert example(K.TOKENIZED, {"input_ids": "[5, 6]"}).labels == [5, 6]


def test_the_users_own_words_for_turns() -> None:
    mapping = {
        "messages": "chat",
        "role_key": "who",
        "content_key": "says",
        "user_role": "Customer",
        "assistant_role": "agent",
    }
    row = {"chat": [{"who": "customer", "says": "hi"}, {"who": "agent", "says": "hello"}]}
    assert normalise(row, plan_rows(K.MESSAGES, mapping)).messages == [U, A]


def _chat(*turns: Any) -> dict[str, Any]:
    return {"messages": list(turns)}


@pytest.mark.parametrize(
    ("kind", "row", "code", "column", "words"),
    [
        (K.MESSAGES, {}, P.MISSING_COLUMN, "messages", "is missing"),
        (K.MESSAGES, {"messages": None}, P.MISSING_COLUMN, "messages", "is null"),
        (K.MESSAGES, {"messages": "hi"}, P.WRONG_TYPE, "messages", "a string"),
        (K.MESSAGES, _chat(), P.EMPTY_VALUE, "messages", "empty"),
        (K.MESSAGES, _chat(U), P.NO_ANSWER, "messages", "No assistant turn"),
        (K.MESSAGES, _chat(U, {**A, "weight": 0}), P.NO_ANSWER, "messages", "weight 0"),
        (
            K.MESSAGES,
            _chat(U, {**A, "role": "bot"}),
            P.UNKNOWN_ROLE,
            "messages",
            'Turn 2: "role" is "bot"',
        ),
        (K.MESSAGES, _chat(U, {"text": "x"}), P.WRONG_TYPE, "messages", "Turn 2"),
        (K.MESSAGES, _chat(U, "hello"), P.WRONG_TYPE, "messages", "Turn 2"),
        (K.MESSAGES, _chat(U, {**A, "content": 4}), P.WRONG_TYPE, "messages", "Turn 2"),
        (K.MESSAGES, _chat(U, {**A, "content": " "}), P.EMPTY_VALUE, "messages", "says nothing"),
        (K.MESSAGES, _chat(U, {**A, "weight": "1"}), P.WRONG_TYPE, "messages", "weight"),
        (
            K.MESSAGES,
            _chat({**U, "content": [{"type": "image_url"}]}, A),
            P.UNSUPPORTED_CONTENT,
            "messages",
            "image_url",
        ),
        (
            K.MESSAGES,
            _chat(U, {**A, "tool_calls": [{"function": {}}]}),
            P.BAD_TOOL_CALL,
            "messages",
            "no name",
        ),
        (
            K.MESSAGES,
            _chat(U, {**A, "tool_calls": [{"name": "f", "arguments": "{"}]}),
            P.BAD_TOOL_CALL,
            "messages",
            '"f"',
        ),
        (K.MESSAGES, {**_chat(U, A), "tools": "{"}, P.BAD_TOOLS, "tools", "not JSON"),
        (K.MESSAGES, {**_chat(U, A), "tools": [3]}, P.BAD_TOOLS, "tools", "list"),
        (
            K.SHAREGPT,
            {"conversations": [{"from": "function_call", "value": "x"}]},
            P.BAD_TOOL_CALL,
            "conversations",
            "Turn 1",
        ),
        (K.ALPACA, {"instruction": "a", "output": ""}, P.EMPTY_VALUE, "output", "empty"),
        (K.ALPACA, {"instruction": "", "output": "b"}, P.EMPTY_VALUE, "instruction", "empty"),
        (K.ALPACA, {"instruction": "a", "output": 3}, P.WRONG_TYPE, "output", "a number"),
        (
            K.ALPACA,
            {"instruction": "a", "output": "b", "history": ["x"]},
            P.WRONG_TYPE,
            "history",
            "list",
        ),
        (
            K.PROMPT_COMPLETION,
            {"prompt": "a", "completion": True},
            P.WRONG_TYPE,
            "completion",
            "a boolean",
        ),
        (K.TEXT, {"text": "  "}, P.EMPTY_VALUE, "text", "empty"),
        (
            K.PREFERENCE,
            {"prompt": "a", "chosen": "b", "rejected": "b"},
            P.EMPTY_VALUE,
            "rejected",
            "same",
        ),
        (K.PREFERENCE, {"chosen": [U, A], "rejected": [U]}, P.NO_ANSWER, "rejected", "end with"),
        (K.KTO, {"messages": [U, A], "label": "good"}, P.WRONG_TYPE, "label", "true or false"),
        (K.KTO, {"messages": [U, A, U], "label": True}, P.NO_ANSWER, "messages", "end with"),
        (K.TOKENIZED, {"input_ids": [1, -5]}, P.BAD_INPUT_IDS, "input_ids", "whole"),
        (
            K.TOKENIZED,
            {"input_ids": [1, 2], "labels": [1]},
            P.BAD_INPUT_IDS,
            "labels",
            "1 values for 2",
        ),
        (K.TOKENIZED, {"input_ids": [1], "labels": [MASKED]}, P.NO_ANSWER, "labels", "learn"),
        (K.TOKENIZED, {"input_ids": []}, P.EMPTY_VALUE, "input_ids", "empty"),
    ],
)
def test_a_bad_row_names_its_column_and_turn(
    kind: K, row: dict[str, Any], code: P, column: str, words: str
) -> None:
    with pytest.raises(BadRow) as caught:
        normalise(row, Plan(kind))
    assert (caught.value.code, caught.value.column) == (code, column)
    assert words in caught.value.message


def test_problems_are_told_in_the_users_column_names() -> None:
    with pytest.raises(BadRow) as caught:
        example(K.PROMPT_COMPLETION, {"q": "hi", "a": ""}, prompt="q", completion="a")
    assert caught.value.column == "a"
    assert '"a" is empty' in caught.value.message


def test_real_tool_conversations_keep_every_call(shared_file: Callable[[str], Path]) -> None:
    path = shared_file("glaive_toolcall_en_demo.json")
    rows = [item for item in read_file(path, path.name) if isinstance(item, Row)]
    calls = observations = with_tools = 0
    for row in rows:
        found = example(K.SHAREGPT, row.values)
        calls += sum(len(m.get("tool_calls", [])) for m in found.messages)
        observations += sum(m["role"] == "tool" for m in found.messages)
        with_tools += found.tools is not None
    assert (calls, observations) == (211, 211)
    assert with_tools == sum(row.values["tools"] != "[]" for row in rows)


_words = st.sampled_from(
    ["role", "content", "from", "value", "user", "assistant", "human", "gpt", "function_call",
     "tool_calls", "function", "name", "arguments", "weight", "", "[1]", '{"role": "user"}', "x"]
)  # fmt: skip
_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 5) | st.floats(allow_nan=False) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from([kind for kind in K if kind is not K.UNKNOWN]), data=st.data())
def test_no_row_of_any_kind_raises_anything_but_bad_row(kind: K, data: st.DataObject) -> None:
    row = data.draw(st.dictionaries(st.sampled_from(sorted(SHAPES[kind].fields)), _anything))
    try:
        outcome: K | str = normalise(row, Plan(kind)).kind
    except BadRow as bad:
        outcome = bad.message
    assert outcome
    recognise(list(row), [row])
