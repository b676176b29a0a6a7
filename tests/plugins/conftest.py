"""A tiny random model, a small dataset, and runs on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsyn.plugin.task import LocalDataset, LocalModel, TaskOutcome
from parsyn.plugin.testing_task import RecordingContext
from parsyn.plugin.trainer import TrainInputs
from parsyn.wire.states import FileFormat, SchemaKind
from parsyn_plugins.trainer_sft.trainer import SftTrainer
from tests import tiny_model


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """A tiny matrix is multiplied faster by one thread than two wait for each other."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    folder = tiny_model.make(tmp_path_factory.mktemp("models") / "tiny")
    return LocalModel(folder, name="tiny", architecture="LlamaForCausalLM", context_length=512)


def write_chats(path: Path, rows: int, *, answer: str = "The answer is {n}.") -> LocalDataset:
    """Questions of growing length with short answers."""
    with path.open("w") as file:
        for n in range(rows):
            question = "What is it? " * (1 + n % 7) + str(n)
            messages = [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer.format(n=n)},
            ]
            file.write(json.dumps({"messages": messages}) + "\n")
    return LocalDataset(path, FileFormat.JSONL, SchemaKind.MESSAGES, name=path.name)


@pytest.fixture
def chats(tmp_path: Path) -> LocalDataset:
    return write_chats(tmp_path / "chats.jsonl", 24)


Run = Callable[..., tuple[TaskOutcome, RecordingContext]]


@pytest.fixture
def run(tiny: LocalModel, chats: LocalDataset, tmp_path: Path) -> Run:
    """Train the tiny model: `run(config, name=..., resume=..., ...)`."""

    def train(
        config: dict[str, Any],
        name: str = "run",
        *,
        model: LocalModel = tiny,
        dataset: LocalDataset = chats,
        validation: LocalDataset | None = None,
        resume: Path | None = None,
        **context: Any,
    ) -> tuple[TaskOutcome, RecordingContext]:
        recording = RecordingContext(tmp_path / name, **context)
        trainer = SftTrainer()
        inputs = TrainInputs(model, dataset, validation, resume)
        return trainer.train(trainer.parse(config), inputs, recording), recording

    return train
