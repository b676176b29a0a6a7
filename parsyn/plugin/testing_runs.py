"""What every trainer, evaluator and exporter must do, as tests on small local inputs.

Each contract wants a fixture for the plugin and fixtures for what it works on; a tiny random model
and two dozen rows are enough.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.evaluator import Evaluator
from parsyn.plugin.exporter import Exporter
from parsyn.plugin.params import PluginParams
from parsyn.plugin.task import LocalDataset, LocalModel, TaskCancelled
from parsyn.plugin.testing_task import RecordingContext
from parsyn.plugin.trainer import DataFacts, Trainer, TrainInputs

HEAVY = "torch"


class FormContract:
    """Of a plugin's `Params`: a form can be drawn from them, and they refuse what they must."""

    @staticmethod
    def check_form(plugin: Trainer[Any] | Evaluator[Any] | Exporter[Any]) -> None:
        assert plugin.name
        assert plugin.title
        assert issubclass(plugin.Params, PluginParams)
        schema = plugin.Params.model_json_schema()
        json.dumps(schema)
        for name, field in schema.get("properties", {}).items():
            assert field.get("title"), f"{name} has no title"
        with pytest.raises(ParsynError) as caught:
            plugin.parse({"no_such_setting": 1})
        assert caught.value.code is ErrorCode.VALIDATION_FAILED
        assert caught.value.errors[0].loc[-1] == "no_such_setting"

    @staticmethod
    def check_light(plugin: object) -> None:
        """Importing the plugin's module must not import torch: the hub does it at every start."""
        module = type(plugin).__module__
        code = f"import sys, {module}; sys.exit({HEAVY!r} in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
        assert done.returncode == 0, f"importing {module} imports {HEAVY}"


class TrainerContract(FormContract):
    """Subclass with fixtures `trainer`, `inputs` (TrainInputs) and `short` (a config of a few
    steps that evaluates and saves at least once)."""

    def test_its_form(self, trainer: Trainer[Any]) -> None:
        self.check_form(trainer)
        assert trainer.accepts

    def test_its_presets(self, trainer: Trainer[Any]) -> None:
        names = [preset.name for preset in trainer.presets]
        assert len(set(names)) == len(names)
        for preset in trainer.presets:
            assert preset.title
            assert preset.description.endswith(".")
            trainer.parse(preset.config)

    def test_its_estimate(self, trainer: Trainer[Any], short: Mapping[str, Any]) -> None:
        found = trainer.estimate(trainer.parse(short), None, DataFacts(rows=24))
        if found is not None:
            assert found.steps is None or found.steps >= 1

    def test_it_is_light_to_import(self, trainer: Trainer[Any]) -> None:
        self.check_light(trainer)

    def test_it_trains_and_reports(
        self,
        trainer: Trainer[Any],
        inputs: TrainInputs,
        short: Mapping[str, Any],
        tmp_path: Path,
    ) -> None:
        context = RecordingContext(tmp_path / "task")
        outcome = trainer.train(trainer.parse(short), inputs, context)
        assert outcome.folder is not None
        assert any(outcome.folder.rglob("*.safetensors"))
        assert not any(outcome.folder.rglob("*.bin"))
        losses = context.values("loss")
        assert losses
        assert all(math.isfinite(loss) for loss in losses)
        steps = [step for step, _ in context.steps]
        assert steps == sorted(steps)
        assert context.steps[-1][0] == context.steps[-1][1]
        assert context.checkpoints
        json.dumps(outcome.facts)

    def test_a_checkpoint_resumes(
        self,
        trainer: Trainer[Any],
        inputs: TrainInputs,
        short: Mapping[str, Any],
        tmp_path: Path,
    ) -> None:
        first = RecordingContext(tmp_path / "first")
        trainer.train(trainer.parse(short), inputs, first)
        start = first.checkpoints[0]
        if start.step == first.steps[-1][1]:
            pytest.skip("its first checkpoint is its last step")
        again = RecordingContext(tmp_path / "again")
        resumed = TrainInputs(inputs.model, inputs.dataset, inputs.validation, start.folder)
        trainer.train(trainer.parse(short), resumed, again)
        assert again.steps[0][0] == start.step + 1
        assert again.steps[-1] == first.steps[-1]

    def test_it_stops_when_it_is_asked_to(
        self,
        trainer: Trainer[Any],
        inputs: TrainInputs,
        short: Mapping[str, Any],
        tmp_path: Path,
    ) -> None:
        context = RecordingContext(tmp_path / "task", cancel_when=lambda seen: bool(seen.steps))
        with pytest.raises(TaskCancelled):
            trainer.train(trainer.parse(short), inputs, context)
        assert len(context.steps) <= 2


class EvaluatorContract(FormContract):
    """Subclass with fixtures `evaluator`, `model` (LocalModel) and `dataset` (LocalDataset)."""

    def test_its_form(self, evaluator: Evaluator[Any]) -> None:
        self.check_form(evaluator)
        assert evaluator.accepts

    def test_it_is_light_to_import(self, evaluator: Evaluator[Any]) -> None:
        self.check_light(evaluator)

    def test_it_measures(
        self,
        evaluator: Evaluator[Any],
        model: LocalModel,
        dataset: LocalDataset,
        tmp_path: Path,
    ) -> None:
        context = RecordingContext(tmp_path / "task")
        outcome = evaluator.evaluate(evaluator.parse({}), model, dataset, context)
        metrics = outcome.facts["metrics"]
        assert metrics
        for name, metric in metrics.items():
            assert math.isfinite(metric["value"]), name
            assert metric["better"] in ("lower", "higher"), name
        json.dumps(outcome.facts)

    def test_the_same_again_is_the_same(
        self,
        evaluator: Evaluator[Any],
        model: LocalModel,
        dataset: LocalDataset,
        tmp_path: Path,
    ) -> None:
        found = []
        for name in ("one", "two"):
            context = RecordingContext(tmp_path / name)
            outcome = evaluator.evaluate(evaluator.parse({}), model, dataset, context)
            found.append({key: m["value"] for key, m in outcome.facts["metrics"].items()})
        assert found[0] == pytest.approx(found[1], rel=1e-4)

    def test_it_stops_when_it_is_asked_to(
        self,
        evaluator: Evaluator[Any],
        model: LocalModel,
        dataset: LocalDataset,
        tmp_path: Path,
    ) -> None:
        context = RecordingContext(tmp_path / "task", cancel_when=lambda seen: True)
        with pytest.raises(TaskCancelled):
            evaluator.evaluate(evaluator.parse({}), model, dataset, context)


class ExporterContract(FormContract):
    """Subclass with fixtures `exporter`, `model` (with its architecture) and `params`."""

    def test_its_form(self, exporter: Exporter[Any]) -> None:
        self.check_form(exporter)

    def test_it_is_light_to_import(self, exporter: Exporter[Any]) -> None:
        self.check_light(exporter)

    def test_it_refuses_in_a_sentence(self, exporter: Exporter[Any]) -> None:
        refusal = exporter.refuses("NoSuchArchitectureForAnything", exporter.parse({}))
        assert refusal
        assert refusal.endswith(".")

    def test_it_writes_files_and_says_how_true_they_are(
        self,
        exporter: Exporter[Any],
        model: LocalModel,
        params: Mapping[str, Any],
        tmp_path: Path,
    ) -> None:
        parsed = exporter.parse(params)
        assert exporter.refuses(model.architecture, parsed) is None
        outcome = exporter.export(parsed, model, RecordingContext(tmp_path / "task"))
        assert outcome.folder is not None
        files = [path for path in outcome.folder.rglob("*") if path.is_file()]
        assert files
        assert all(path.stat().st_size for path in files)
        assert outcome.facts["format"] == exporter.name
        assert outcome.facts["parity"]["verdict"]
        json.dumps(outcome.facts)

    def test_it_stops_when_it_is_asked_to(
        self,
        exporter: Exporter[Any],
        model: LocalModel,
        params: Mapping[str, Any],
        tmp_path: Path,
    ) -> None:
        context = RecordingContext(tmp_path / "task", cancel_when=lambda seen: True)
        with pytest.raises(TaskCancelled):
            exporter.export(exporter.parse(params), model, context)
