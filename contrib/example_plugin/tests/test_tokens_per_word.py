"""The plugin's own tests: no hub, no model weights, a tokenizer of four words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from parsyn_tokens_per_word import TokensPerWord
from tokenizers import Tokenizer, models, pre_tokenizers

from parsyn.errors import ParsynError
from parsyn.plugin.task import LocalDataset, LocalModel, TaskCancelled
from parsyn.wire.states import FileFormat, SchemaKind, TaskPhase


class Context:
    """A task context that only remembers."""

    device = "cpu"
    max_batch_size = 1
    trust_remote_code = False

    def __init__(self, folder: Path, *, stopped: bool = False) -> None:
        self.folder = folder
        self.stopped = stopped
        self.lines: list[str] = []
        self.steps: list[int] = []

    def log(self, text: str, level: str = "info") -> None:
        self.lines.append(text)

    def phase(self, phase: TaskPhase, done: int | None = None, total: int | None = None) -> None:
        self.lines.append(phase)

    def progress(self, step: int, total_steps: int, epoch: float | None = None) -> None:
        self.steps.append(step)

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        raise NotImplementedError

    def sample(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def checkpoint(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def cancelled(self) -> bool:
        return self.stopped


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    vocabulary = {"[UNK]": 0, "the": 1, "vent": 2, "is": 3, ".": 4}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return LocalModel(tmp_path)


def dataset(tmp_path: Path, *answers: str) -> LocalDataset:
    path = tmp_path / "rows.jsonl"
    rows = [{"messages": [{"role": "assistant", "content": text}]} for text in answers]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return LocalDataset(path, FileFormat.JSONL, SchemaKind.MESSAGES)


def test_it_counts_tokens_for_each_word(tmp_path: Path, model: LocalModel) -> None:
    rows = dataset(tmp_path, "the vent is open.", "the vent")
    context = Context(tmp_path)
    outcome = TokensPerWord().evaluate(TokensPerWord().parse({}), model, rows, context)
    # Five tokens for four words, and two for two.
    value = outcome.facts["metrics"]["tokens_per_word"]
    assert value["value"] == pytest.approx((5 / 4 + 1) / 2)
    assert value["stderr"] == pytest.approx(0.125)
    assert value["better"] == "lower"
    assert context.steps == [1, 2]


def test_it_stops_at_max_rows(tmp_path: Path, model: LocalModel) -> None:
    rows = dataset(tmp_path, "the vent", "the vent is open.")
    params = TokensPerWord().parse({"max_rows": 1})
    outcome = TokensPerWord().evaluate(params, model, rows, Context(tmp_path))
    assert outcome.facts["metrics"]["tokens_per_word"]["value"] == 1


def test_it_stops_when_asked_to(tmp_path: Path, model: LocalModel) -> None:
    rows = dataset(tmp_path, "the vent")
    with pytest.raises(TaskCancelled):
        TokensPerWord().evaluate(
            TokensPerWord().parse({}), model, rows, Context(tmp_path, stopped=True)
        )


def test_a_mistyped_parameter_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ParsynError, match="Did you mean `max_rows`"):
        TokensPerWord().parse({"max_row": 3})
