"""Templates render as transformers renders them, from where models keep them, within bounds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from parsyn.rows.template import (
    ChatTemplate,
    TemplateError,
    TemplateOrigin,
    load_template,
    special_tokens,
)
from parsyn.rows.turns import Message
from tests.rows import chat_templates

TOKENS = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
CALL: Any = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Ålesund"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"a": ["<b>", 1]}}}]
CHAT: list[Message] = [
    {"role": "system", "content": " Be brief. "},
    {"role": "user", "content": "Wärme?\n"},
    {"role": "assistant", "content": "A moment.", "tool_calls": [CALL]},
    {"role": "tool", "content": '{"t": -3}'},
    {"role": "assistant", "content": "Cold.", "reasoning_content": "-3 is cold"},
]
PLAIN: list[Message] = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": " b "},
    {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d"},
]


@pytest.mark.parametrize(
    "name", ["CHATML_WITH_SYSTEM", "LLAMA_STYLE", "THINKING", "ALTERNATING", "MARKED"]
)
@pytest.mark.parametrize("ready", [False, True])
def test_same_text_as_transformers(tokenizer: Tokenizer, name: str, ready: bool) -> None:
    transformers = pytest.importorskip("transformers")
    source = getattr(chat_templates, name)
    peer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=source, **TOKENS
    )
    ours = ChatTemplate(source, special_tokens=TOKENS)
    tools = TOOLS if name == "LLAMA_STYLE" else None
    chats = {"LLAMA_STYLE": [CHAT, PLAIN], "THINKING": [PLAIN, [*CHAT[:2], CHAT[-1]]]}
    for chat in chats.get(name, [PLAIN]):
        expected = peer.apply_chat_template(
            chat, tools=tools, tokenize=False, add_generation_prompt=ready
        )
        assert ours.render(chat, tools, add_generation_prompt=ready) == expected


def test_same_marks_as_transformers(tokenizer: Tokenizer) -> None:
    transformers = pytest.importorskip("transformers")
    peer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=chat_templates.MARKED, **TOKENS
    )
    expected = peer.apply_chat_template(PLAIN, return_dict=True, return_assistant_tokens_mask=True)
    text, spans = ChatTemplate(chat_templates.MARKED).render_marked(PLAIN)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    mask = [int(any(start <= at < end for start, end in spans)) for at, _ in encoding.offsets]
    assert encoding.ids == expected["input_ids"]
    assert mask == expected["assistant_masks"]


def test_tools_and_calls_are_written_where_the_template_would_drop_them() -> None:
    text = ChatTemplate(chat_templates.CHATML_WITH_SYSTEM).render(CHAT, TOOLS)
    assert text.startswith(
        "<|im_start|>system\n Be brief. \n\nYou may call these functions:\n<tools>"
    )
    assert json.dumps(TOOLS[0]) in text
    assert (
        "A moment.\n<tool_call>\n"
        '{"name": "weather", "arguments": {"city": "Ålesund"}}\n</tool_call>'
        "<|im_end|>"
    ) in text
    once = ChatTemplate(chat_templates.CHATML_WITH_SYSTEM)
    assert once.render(*once.fold(CHAT, TOOLS)) == text


def test_the_time_is_the_callers() -> None:
    template = ChatTemplate(
        "{{ strftime_now('%d %b %Y') }}", now=lambda: datetime(2024, 7, 26, tzinfo=UTC)
    )
    assert template.render(PLAIN) == "26 Jul 2024"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ 'a' * 10000000 }}", "too many times"),
        ("{{ 10000000 * 'a' }}", "too many times"),
        ("{{ 9 ** 9999999 }}", "huge power"),
        ("{{ '%9999999d' % 1 }}", "too wide"),
        ("{{ '%9999999d' | format(1) }}", "too wide"),
        ("{{ 'a' | center(99999999) }}", "too wide"),
        ("{{ [1] | tojson(indent=99999) }}", "too far"),
        ("{{ 'a' | indent(99999) }}", "too far"),
        ("{% for i in range(10 ** 9) %}x{% endfor %}", "Range too big"),
        ("{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}", "output is too long"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ cycler.__init__.__globals__ }}", "unsafe"),
        ("{% set ns = namespace(__class__=1) %}", "namespace"),
        ("{% include 'x' %}", "no loader"),
        ("{{ raise_exception('only two roles') }}", "only two roles"),
        ("{{ messages[9]['role'] + 'a' }}", "no element 9"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% if %}", "not valid"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "RecursionError"),
    ],
)
def test_what_a_template_may_not_do_is_one_sentence(source: str, words: str) -> None:
    with pytest.raises(TemplateError) as caught:
        ChatTemplate(source).render(PLAIN)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_models_keep_their_template(model_dir: Path) -> None:
    template = load_template(model_dir)
    assert template.origin is TemplateOrigin.MODEL
    assert template.special_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    (model_dir / "chat_template.jinja").unlink()
    config_path = model_dir / "tokenizer_config.json"
    config = json.loads(config_path.read_text())
    for configured in (
        "one",
        [{"name": "tool_use", "template": "two"}, {"name": "default", "template": "one"}],
    ):
        config_path.write_text(json.dumps({**config, "chat_template": configured}))
        assert load_template(model_dir).source == "one"


def test_a_base_model_without_a_template_gets_chatml_that_ends_with_its_own_end(
    model_dir: Path,
) -> None:
    (model_dir / "chat_template.jinja").unlink()
    (model_dir / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    template = load_template(model_dir)
    assert template.origin is TemplateOrigin.DEFAULT
    assert template.render(PLAIN[:2], add_generation_prompt=True) == (
        "<|im_start|>user\na</s>\n<|im_start|>assistant\n b </s>\n<|im_start|>assistant\n"
    )
    (model_dir / "tokenizer_config.json").unlink()
    assert load_template(model_dir).render(PLAIN[:1]) == "<|im_start|>user\na<|im_end|>\n"


def test_a_model_folder_that_cannot_be_read(model_dir: Path) -> None:
    (model_dir / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateError, match=r"chat_template\.jinja of the model is not UTF-8"):
        load_template(model_dir)
    (model_dir / "chat_template.jinja").write_text("x" * (2 << 20))
    with pytest.raises(TemplateError, match="larger than"):
        load_template(model_dir)
    (model_dir / "tokenizer_config.json").write_text("{")
    with pytest.raises(TemplateError, match="not valid JSON"):
        special_tokens(model_dir)
