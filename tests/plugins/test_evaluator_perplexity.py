"""Perplexity against a plain computation, its error bar, and its refusals."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

import pytest

from parsyn.errors import ParsynError
from parsyn.plugin.task import LocalDataset, LocalModel, TaskCancelled, TaskFailure
from parsyn.plugin.testing_task import RecordingContext
from parsyn.wire.states import FailureReason, FileFormat, SchemaKind, TaskPhase
from parsyn_plugins.evaluator_perplexity.evaluator import PerplexityEvaluator
from parsyn_plugins.evaluator_perplexity.measure import mean_loss

evaluator = PerplexityEvaluator()


def _plain_losses(model: LocalModel, dataset: LocalDataset) -> list[list[float]]:
    """Each answer token's loss, by transformers' own template, one row at a time, no batch."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.path)
    network = AutoModelForCausalLM.from_pretrained(model.path, dtype=torch.bfloat16)
    found = []
    for line in dataset.path.read_text().splitlines():
        messages = json.loads(line)["messages"]
        whole = tokenizer.apply_chat_template(messages, tokenize=False)
        prompt = tokenizer.apply_chat_template(
            messages[:-1], tokenize=False, add_generation_prompt=True
        )
        ids = tokenizer(whole.rstrip("\n"), add_special_tokens=False)["input_ids"]
        start = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
        with torch.no_grad():
            logits = network(input_ids=torch.tensor([ids])).logits[0].float()
        logp = torch.log_softmax(logits, -1)
        found.append([-float(logp[at - 1, ids[at]]) for at in range(start, len(ids))])
    return found


def test_it_is_the_plain_perplexity(tiny: LocalModel, chats: LocalDataset, tmp_path: Path) -> None:
    context = RecordingContext(tmp_path / "eval")
    outcome = evaluator.evaluate(evaluator.parse({}), tiny, chats, context)
    plain = _plain_losses(tiny, chats)
    tokens = [loss for row in plain for loss in row]
    metric = outcome.facts["metrics"]["perplexity"]
    assert outcome.facts["tokens"] == len(tokens)
    assert metric["value"] == pytest.approx(math.exp(statistics.fmean(tokens)), rel=2e-3)
    assert metric["better"] == "lower"
    assert 0 < metric["stderr"] < metric["value"]
    assert TaskPhase.EVALUATING in context.phases
    assert context.steps[-1] == (24, 24)


def test_the_error_bar_is_that_of_the_ratio() -> None:
    counts = [3, 5, 2, 8]
    losses = [6.0, 12.5, 3.0, 15.0]
    mean, stderr = mean_loss(losses, counts)
    residuals = [y - mean * x for y, x in zip(losses, counts, strict=True)]
    assert mean == pytest.approx(36.5 / 18)
    expected = math.sqrt(4 / 3 * sum(r * r for r in residuals)) / 18
    assert stderr == pytest.approx(expected)
    assert mean_loss([4.0, 4.0, 4.0], [2, 2, 2]) == (2.0, 0.0)
    assert mean_loss([4.0], [2]) == (2.0, 0.0)


def test_a_limit_chooses_rows_by_the_seed(
    tiny: LocalModel, chats: LocalDataset, tmp_path: Path
) -> None:
    def value(name: str, seed: int) -> float:
        params = evaluator.parse({"max_rows": 5, "seed": seed})
        outcome = evaluator.evaluate(params, tiny, chats, RecordingContext(tmp_path / name))
        assert outcome.facts["rows"] == 5
        return float(outcome.facts["metrics"]["loss"]["value"])

    assert value("a", 1) == value("b", 1) != value("c", 2)


def test_it_stops_when_cancelled(tiny: LocalModel, chats: LocalDataset, tmp_path: Path) -> None:
    context = RecordingContext(
        tmp_path / "eval", max_batch_size=4, cancel_when=lambda seen: len(seen.steps) >= 2
    )
    with pytest.raises(TaskCancelled):
        evaluator.evaluate(evaluator.parse({}), tiny, chats, context)
    assert len(context.steps) == 2


def test_a_sequence_beyond_the_context_is_refused(
    tiny: LocalModel, chats: LocalDataset, tmp_path: Path
) -> None:
    params = evaluator.parse({"max_seq_length": 4096})
    with pytest.raises(TaskFailure, match="512") as caught:
        evaluator.evaluate(params, tiny, chats, RecordingContext(tmp_path / "eval"))
    assert caught.value.failure.reason is FailureReason.USER_ERROR


def test_rows_without_an_answer_are_bad_data(tiny: LocalModel, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "Hello?"}]}\n')
    dataset = LocalDataset(path, FileFormat.JSONL, SchemaKind.MESSAGES)
    with pytest.raises(TaskFailure) as caught:
        evaluator.evaluate(evaluator.parse({}), tiny, dataset, RecordingContext(tmp_path / "eval"))
    assert caught.value.failure.reason is FailureReason.BAD_DATA


def test_unknown_parameters_are_named() -> None:
    with pytest.raises(ParsynError, match="max_rows"):
        evaluator.parse({"max_row": 3})
