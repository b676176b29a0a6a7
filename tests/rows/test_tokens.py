"""Exactly the answers and the ends of their turns are learnt, whatever the template does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, processors

from parsyn.rows.formats import Row, read_file
from parsyn.rows.mapping import plan_rows
from parsyn.rows.messages import MASKED, Example, normalise
from parsyn.rows.problems import BadRow, ProblemCode
from parsyn.rows.spans import TrainOn
from parsyn.rows.template import ChatTemplate, TemplateOrigin, load_template
from parsyn.rows.tokens import (
    RowEncoder,
    TokenizedExample,
    load_tokenizer,
    preview_tokens,
    tokenise,
    tokenise_all,
)
from parsyn.rows.turns import Message
from parsyn.wire.states import SchemaKind
from tests.rows import chat_templates

TOKENS = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
CHATML = ChatTemplate(chat_templates.CHATML_WITH_SYSTEM, special_tokens=TOKENS)


def chat(*said: str, **last: Any) -> Example:
    """User and assistant in turn; `last` adds to the last turn."""
    roles = ("user", "assistant")
    messages: list[Message] = [
        {"role": roles[place % 2], "content": text} for place, text in enumerate(said)
    ]
    messages[-1].update(last)  # type: ignore[typeddict-item]
    return Example(SchemaKind.MESSAGES, messages)


def learnt(tokenizer: Tokenizer, tokenized: TokenizedExample) -> list[str]:
    """The texts of the runs of trained tokens."""
    runs: list[list[int]] = []
    was = False
    for id_, label in zip(tokenized.input_ids, tokenized.labels, strict=True):
        if label != MASKED:
            assert label == id_
            runs = runs if was else [*runs, []]
            runs[-1].append(id_)
        was = label != MASKED
    return [tokenizer.decode(run, skip_special_tokens=False) for run in runs]


def test_each_answer_with_the_end_of_its_turn(tokenizer: Tokenizer) -> None:
    example = chat("Où ?", "Là.", "And?", "🙂 done")
    found = tokenise(example, tokenizer, CHATML)
    assert learnt(tokenizer, found) == ["Là.<|im_end|>", "🙂 done<|im_end|>"]
    assert tokenizer.decode(found.input_ids, skip_special_tokens=False) == CHATML.render(
        example.messages
    )
    assert found.trained_count == sum(found.trained)


@pytest.mark.parametrize(
    ("train_on", "expected"),
    [("last_turn", ["d<|im_end|>"]), ("completions", ["b<|im_end|>", "d<|im_end|>"])],
)
def test_the_last_turn_or_all_of_them(
    tokenizer: Tokenizer, train_on: TrainOn, expected: list[str]
) -> None:
    found = tokenise(chat("a", "b", "c", "d"), tokenizer, CHATML, train_on)
    assert learnt(tokenizer, found) == expected


def test_everything(tokenizer: Tokenizer) -> None:
    found = tokenise(chat("a", "b"), tokenizer, CHATML, "all")
    assert found.labels == found.input_ids


def test_a_turn_of_weight_0_is_read_but_not_learnt(tokenizer: Tokenizer) -> None:
    example = chat("a", "b", "c", "d")
    example.messages[1]["weight"] = 0
    assert learnt(tokenizer, tokenise(example, tokenizer, CHATML)) == ["d<|im_end|>"]


@pytest.mark.parametrize(
    ("source", "said", "expected"),
    [
        (chat_templates.LLAMA_STYLE, ("a", " b ", "c", "d"), ["b<|im_end|>", "d<|im_end|>"]),
        (
            chat_templates.THINKING,
            ("a", "b", "c", "d"),
            ["b<|im_end|>", "\n</think>\n\nd<|im_end|>"],
        ),
        (chat_templates.MARKED, ("a", "b", "c", "d"), ["b<|im_end|>", "d<|im_end|>"]),
        (chat_templates.ALTERNATING, ("a", "b", "c", "d"), [" b<|im_end|>", " d<|im_end|>"]),
    ],
)
def test_templates_with_ways_of_their_own(
    tokenizer: Tokenizer, source: str, said: Sequence[str], expected: list[str]
) -> None:
    template = ChatTemplate(source, special_tokens=TOKENS)
    assert learnt(tokenizer, tokenise(chat(*said), tokenizer, template)) == expected


def test_thoughts_of_the_last_answer_are_learnt(tokenizer: Tokenizer) -> None:
    template = ChatTemplate(chat_templates.THINKING, special_tokens=TOKENS)
    example = chat("a", "b", reasoning_content="hm")
    assert learnt(tokenizer, tokenise(example, tokenizer, template)) == [
        "hm\n</think>\n\nb<|im_end|>"
    ]


def test_calls_are_learnt_and_their_results_are_not(tokenizer: Tokenizer) -> None:
    call: Any = {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
    example = chat("a", "")
    example.messages[1]["tool_calls"] = [call]
    example.messages.append({"role": "tool", "content": "7"})
    example.messages.append({"role": "assistant", "content": "Seven."})
    for source, written in (
        (chat_templates.LLAMA_STYLE, '{"name": "f", "arguments": {"x": 1}}<|im_end|>'),
        (
            chat_templates.CHATML_WITH_SYSTEM,
            '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call><|im_end|>',
        ),
    ):
        template = ChatTemplate(source, special_tokens=TOKENS)
        found = tokenise(example, tokenizer, template)
        assert learnt(tokenizer, found) == [written, "Seven.<|im_end|>"]


def test_a_template_that_hides_its_answers_is_refused_unless_the_last_turn_is_enough(
    tokenizer: Tokenizer,
) -> None:
    template = ChatTemplate(chat_templates.REWRITES_EARLIER_TURNS, special_tokens=TOKENS)
    example = chat("a", "b", "c", "d")
    with pytest.raises(BadRow) as caught:
        tokenise(example, tokenizer, template)
    assert caught.value.code is ProblemCode.TEMPLATE_FAILED
    assert "generation" in caught.value.message
    found = tokenise(example, tokenizer, template, "all")
    assert found.trained_count == len(found.input_ids)


def test_what_a_template_refuses_comes_as_the_rows_problem(tokenizer: Tokenizer) -> None:
    template = ChatTemplate(chat_templates.ALTERNATING, special_tokens=TOKENS)
    wrong = Example(SchemaKind.MESSAGES, [{"role": "assistant", "content": "hello"}])
    first, second, third = tokenise_all(
        [chat("a", "b"), wrong, chat("c", "d")], tokenizer, template
    )
    assert isinstance(first, TokenizedExample)
    assert isinstance(third, TokenizedExample)
    assert isinstance(second, BadRow)
    assert "Roles must alternate" in second.message


def test_text_is_learnt_whole_between_begin_and_end(tokenizer: Tokenizer) -> None:
    example = Example(SchemaKind.TEXT, text="Some words.")
    found = tokenise(example, tokenizer, CHATML)
    assert learnt(tokenizer, found) == ["Some words.<|im_end|>"]
    with_ends = Tokenizer.from_str(tokenizer.to_str())
    with_ends.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A <|im_end|>",
        special_tokens=[("<|endoftext|>", 0), ("<|im_end|>", 2)],
    )
    found = tokenise(example, with_ends, CHATML)
    assert (found.input_ids[0], found.input_ids[-1]) == (0, 2)
    assert found.input_ids.count(2) == 1
    assert found.labels == found.input_ids


def test_a_pair_follows_the_models_template_or_stands_bare(tokenizer: Tokenizer) -> None:
    plan = plan_rows(SchemaKind.PROMPT_COMPLETION, None)
    example = normalise({"prompt": "Q: a\nA:", "completion": " b"}, plan)
    assert learnt(tokenizer, tokenise(example, tokenizer, CHATML)) == [" b<|im_end|>"]
    bare = ChatTemplate("unused", TemplateOrigin.DEFAULT, TOKENS)
    found = tokenise(example, tokenizer, bare)
    assert tokenizer.decode(found.input_ids, skip_special_tokens=False) == "Q: a\nA: b<|im_end|>"
    assert learnt(tokenizer, found) == [" b<|im_end|>"]
    spaced = normalise({"prompt": "Say: ", "completion": "over"}, plan)
    assert learnt(tokenizer, tokenise(spaced, tokenizer, bare)) == [" over<|im_end|>"]


def test_token_ids_are_taken_as_they_are_if_the_model_has_them(tokenizer: Tokenizer) -> None:
    example = Example(SchemaKind.TOKENIZED, input_ids=[5, 6, 7], labels=[MASKED, 6, 7])
    assert tokenise(example, tokenizer, CHATML) == TokenizedExample([5, 6, 7], [MASKED, 6, 7])
    with pytest.raises(BadRow, match="beyond the model's"):
        tokenise(Example(SchemaKind.TOKENIZED, input_ids=[5, 10**6]), tokenizer, CHATML)


def test_a_preference_shows_its_chosen_answer_and_a_prompt_alone_teaches_nothing(
    tokenizer: Tokenizer,
) -> None:
    plan = plan_rows(SchemaKind.PREFERENCE, None)
    example = normalise({"prompt": "a", "chosen": "b", "rejected": "c"}, plan)
    assert learnt(tokenizer, tokenise(example, tokenizer, CHATML)) == ["b<|im_end|>"]
    with pytest.raises(BadRow, match="no answer to learn from"):
        tokenise(Example(SchemaKind.PROMPT_ONLY, example.messages), tokenizer, CHATML)


def test_a_row_that_is_too_long_is_cut_at_its_end(tokenizer: Tokenizer) -> None:
    whole = tokenise(chat("a", "b " * 50), tokenizer, CHATML)
    assert not whole.truncated
    size = len(whole.input_ids)
    cut = tokenise(chat("a", "b " * 50), tokenizer, CHATML, max_length=size - 5)
    assert cut.truncated
    assert cut.input_ids == whole.input_ids[: size - 5]
    assert 0 < cut.trained_count < whole.trained_count
    nothing = tokenise(chat("long " * 60, "b"), tokenizer, CHATML, max_length=50)
    assert (nothing.truncated, nothing.trained_count) == (True, 0)


def test_the_preview_is_the_row_in_pieces(tokenizer: Tokenizer) -> None:
    example = chat("naïve 🙂🙂?", "你好 <tool_call>")
    tokens = preview_tokens(example, tokenizer, CHATML)
    assert "".join(token.text for token in tokens) == CHATML.render(example.messages)
    assert [token.trained for token in tokens] == tokenise(example, tokenizer, CHATML).trained
    specials = {token.text for token in tokens if token.special}
    assert specials == {"<|im_start|>", "<|im_end|>"}
    given_ids = Example(SchemaKind.TOKENIZED, input_ids=tokenizer.encode("so it goes").ids)
    shown = preview_tokens(given_ids, tokenizer, CHATML)
    assert "".join(token.text for token in shown) == "so it goes"


_said = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda text: text.strip() and "<|" not in text
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(turns=st.lists(st.tuples(_said, _said), min_size=1, max_size=4))
def test_whatever_is_said_the_answers_are_learnt_and_nothing_else(
    tokenizer: Tokenizer, turns: list[tuple[str, str]]
) -> None:
    example = chat(*(text for pair in turns for text in pair))
    found = tokenise(example, tokenizer, CHATML)
    assert learnt(tokenizer, found) == [answer + "<|im_end|>" for _, answer in turns]
    tokens = preview_tokens(example, tokenizer, CHATML)
    assert "".join(token.text for token in tokens) == CHATML.render(example.messages)


@pytest.mark.parametrize("name", ["alpaca_en_demo.json", "glaive_toolcall_en_demo.json"])
def test_real_rows_are_tokenised_as_transformers_does(
    shared_file: Callable[[str], Path], tokenizer: Tokenizer, name: str
) -> None:
    transformers = pytest.importorskip("transformers")
    template = ChatTemplate(chat_templates.LLAMA_STYLE, special_tokens=TOKENS)
    peer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=chat_templates.LLAMA_STYLE, **TOKENS
    )
    path = shared_file(name)
    rows = [item for item in read_file(path, name) if isinstance(item, Row)][:60]
    kind = SchemaKind.ALPACA if name.startswith("alpaca") else SchemaKind.SHAREGPT
    examples = [normalise(row.values, plan_rows(kind, None)) for row in rows]
    encoded = list(tokenise_all(examples, tokenizer, template))
    for example, found in zip(examples, encoded, strict=True):
        assert isinstance(found, TokenizedExample)
        expected = peer.apply_chat_template(
            example.messages, tools=example.tools, return_dict=True
        )["input_ids"]
        assert found.input_ids == expected
        answers = [m for m in example.messages if m["role"] == "assistant"]
        assert len(learnt(tokenizer, found)) == len(answers)


def test_a_model_folder_gives_tokenizer_and_template(model_dir: Path) -> None:
    loaded = load_tokenizer(model_dir)
    encoder = RowEncoder(loaded, load_template(model_dir))
    text, tokens = encoder.preview(chat("a", "b"))
    assert text.endswith("<|im_start|>assistant\nb<|im_end|>\n")
    assert [token.text for token in tokens if token.trained] == ["b", "<|im_end|>"]
    (model_dir / "tokenizer.json").write_text("{}")
    with pytest.raises(BadRow, match="cannot be read"):
        load_tokenizer(model_dir)
    (model_dir / "tokenizer.json").unlink()
    with pytest.raises(BadRow, match=r"no tokenizer\.json"):
        load_tokenizer(model_dir)


def test_more_rows_than_a_batch_come_back_in_order(tokenizer: Tokenizer) -> None:
    examples: list[Example] = []
    for number in range(600):
        examples.append(chat("a", f"answer {number}"))
        examples.append(Example(SchemaKind.TEXT, text=f"text {number}"))
    found = list(tokenise_all(examples, tokenizer, CHATML))
    assert len(found) == 1200
    for number in range(600):
        pair, text = found[2 * number], found[2 * number + 1]
        assert isinstance(pair, TokenizedExample)
        assert isinstance(text, TokenizedExample)
        assert learnt(tokenizer, pair) == [f"answer {number}<|im_end|>"]
        assert learnt(tokenizer, text) == [f"text {number}<|im_end|>"]
