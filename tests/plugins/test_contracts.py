"""The bundled plugins keep the contracts that a stranger's plugin is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parsyn.plugin.task import LocalDataset, LocalModel
from parsyn.plugin.testing import EvaluatorContract, ExporterContract, TrainerContract
from parsyn.plugin.trainer import TrainInputs
from parsyn_plugins.evaluator_perplexity.evaluator import PerplexityEvaluator
from parsyn_plugins.exporter_gguf.exporter import GgufExporter
from parsyn_plugins.trainer_sft.trainer import SftTrainer
from tests.plugins.conftest import write_chats


@pytest.fixture
def model(tiny: LocalModel) -> LocalModel:
    return tiny


class TestSft(TrainerContract):
    @pytest.fixture
    def trainer(self) -> SftTrainer:
        return SftTrainer()

    @pytest.fixture
    def inputs(self, tiny: LocalModel, chats: LocalDataset, tmp_path: Path) -> TrainInputs:
        return TrainInputs(tiny, chats, write_chats(tmp_path / "validation.jsonl", 4))

    @pytest.fixture
    def short(self) -> dict[str, Any]:
        return {
            "max_steps": 4,
            "batch_size": 4,
            "gradient_accumulation_steps": 1,
            "eval_steps": 2,
            "save_steps": 2,
            "sample_prompts": 1,
            "sample_tokens": 4,
        }


class TestPerplexity(EvaluatorContract):
    @pytest.fixture
    def evaluator(self) -> PerplexityEvaluator:
        return PerplexityEvaluator()

    @pytest.fixture
    def dataset(self, chats: LocalDataset) -> LocalDataset:
        return chats


class TestGguf(ExporterContract):
    @pytest.fixture
    def exporter(self) -> GgufExporter:
        pytest.importorskip("llama_cpp")
        return GgufExporter()

    @pytest.fixture
    def params(self) -> dict[str, Any]:
        return {"quantization": "Q8_0"}
