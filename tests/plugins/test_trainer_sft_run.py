"""Whole runs of the trainer on a tiny model: what they leave and what they report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from parsyn.plugin import loading
from parsyn.plugin.scoring import row_losses
from parsyn.plugin.task import LocalDataset, LocalModel
from parsyn.wire.states import FileFormat, SchemaKind, TaskPhase
from tests.plugins.conftest import Run, write_chats

FAST: dict[str, Any] = {
    "batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_steps": 6,
    "lr": 1e-2,
    "sample_prompts": 0,
    "validation_split": 0,
    "mixed_precision": "no",
}


def test_lora_learns_and_reports_each_step(run: Run) -> None:
    outcome, seen = run({**FAST, "epochs": 10, "max_steps": 20})
    losses = seen.values("loss")
    assert losses[-1] < losses[0] - 0.5
    assert [step for step, _ in seen.metrics] == list(range(1, 21))
    first = seen.metrics[0][1]
    assert set(first) == {"loss", "learning_rate", "grad_norm", "tokens_per_second", "epoch"}
    assert seen.steps == [(step, 20) for step in range(1, 21)]
    assert outcome.facts["steps"] == 20
    assert outcome.facts["final_loss"] == losses[-1]
    assert outcome.facts["trained_tokens"] > 20 * 8 * 20


def test_the_result_is_an_adapter_that_loads_and_chats_alike(
    run: Run, tiny: LocalModel, tmp_path: Path
) -> None:
    outcome, _ = run(FAST)
    assert outcome.folder is not None
    names = {path.name for path in outcome.folder.iterdir()}
    assert names == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "chat_template.jinja",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    for name in ("chat_template.jinja", "tokenizer.json"):
        assert (outcome.folder / name).read_bytes() == (tiny.path / name).read_bytes()
    config = json.loads((outcome.folder / "adapter_config.json").read_bytes())
    assert config["base_model_name_or_path"] == "tiny"
    assert (config["r"], config["lora_alpha"]) == (16, 32.0)
    tuned = LocalModel(tiny.path, adapter=outcome.folder)
    model, _ = loading.load_base(tuned, device="cpu", dtype=torch.float32)
    ids = torch.arange(30)[None]
    before = model(input_ids=ids).logits
    after = loading.attach_adapter(model, outcome.folder)(input_ids=ids).logits
    assert not torch.allclose(before, after)


def test_full_training_changes_every_layer(run: Run, tiny: LocalModel) -> None:
    outcome, _ = run({**FAST, "use_peft": False, "mixed_precision": "bf16"})
    assert outcome.folder is not None
    before = load_file(tiny.path / "model.safetensors")
    after = load_file(outcome.folder / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(not torch.equal(before[name].bfloat16(), after[name]) for name in before)
    assert outcome.facts["method"] == "full"
    model, _ = loading.load_base(LocalModel(outcome.folder), device="cpu", dtype=torch.bfloat16)
    assert model.config.use_cache


@pytest.mark.parametrize("options", [{"dora": True}, {"rslora": True, "lora_dropout": 0.1}])
def test_kinds_of_adapter(run: Run, options: dict[str, Any]) -> None:
    config = {**FAST, **options, "max_steps": 12, "epochs": 9, "mixed_precision": "bf16"}
    outcome, seen = run(config)
    losses = seen.values("loss")
    assert losses[-1] < losses[0]
    assert outcome.folder is not None
    config = json.loads((outcome.folder / "adapter_config.json").read_bytes())
    assert config["use_dora"] is options.get("dora", False)
    assert config["use_rslora"] is options.get("rslora", False)


@pytest.mark.parametrize("options", [{"method": "qlora"}, {"quantization": "8bit"}])
def test_a_quantised_base_learns_where_bitsandbytes_runs(run: Run, options: dict[str, Any]) -> None:
    pytest.importorskip("bitsandbytes")
    config = {**FAST, **options, "max_steps": 12, "epochs": 9, "mixed_precision": "bf16"}
    outcome, seen = run({**config, "lr": 5e-3})
    losses = seen.values("loss")
    assert losses[-1] < losses[0] - 0.3
    assert outcome.folder is not None
    assert (outcome.folder / "adapter_model.safetensors").is_file()


def test_named_layers_alone_are_adapted(run: Run) -> None:
    outcome, _ = run({**FAST, "target_modules": ["q_proj"], "lora_r": 2})
    assert outcome.folder is not None
    weights = load_file(outcome.folder / "adapter_model.safetensors")
    assert len(weights) == 4
    assert all("q_proj" in name for name in weights)


def test_packing_and_checkpointing_change_no_result(run: Run) -> None:
    """Same seed, same data: packed, recomputed and plain runs learn the same."""
    plain = run(FAST, "plain")[1].values("loss")
    packed = run({**FAST, "packing": True}, "packed")[1].values("loss")
    recomputed = run({**FAST, "gradient_checkpointing": True}, "again")[1].values("loss")
    assert packed == pytest.approx(plain, rel=1e-4)
    assert recomputed == pytest.approx(plain, rel=1e-5)


def test_accumulation_is_the_larger_batch(run: Run) -> None:
    whole = run({**FAST, "batch_size": 24, "max_steps": 3, "epochs": 9}, "whole")[1].values("loss")
    split = {**FAST, "batch_size": 6, "gradient_accumulation_steps": 4, "max_steps": 3, "epochs": 9}
    assert run(split, "split")[1].values("loss") == pytest.approx(whole, rel=1e-4)


def test_bf16_learns_as_32_bit_does(run: Run) -> None:
    config = {**FAST, "max_steps": 20, "epochs": 10}
    full = run(config, "full")[1].values("loss")
    half = run({**config, "mixed_precision": "bf16"}, "half")[1].values("loss")
    assert half[-1] == pytest.approx(full[-1], rel=0.05)


def test_validation_checkpoints_and_samples(run: Run, tiny: LocalModel) -> None:
    config = {**FAST, "validation_split": 4, "sample_prompts": 2, "sample_tokens": 5}
    outcome, seen = run({**config, "max_steps": 8, "epochs": 9, "eval_steps": 3, "save_steps": 4})
    evaluated = [step for step, values in seen.metrics if "eval_loss" in values]
    assert evaluated == [3, 6, 8]
    assert [found.step for found in seen.checkpoints] == [4, 8]
    assert seen.checkpoints[-1].best is (outcome.facts["best_step"] == 8)
    assert {sample["step"] for sample in seen.samples} >= {3, 8}
    sample = seen.samples[0]
    assert sample["prompt"][-1]["role"] == "user"
    assert sample["reference"].startswith("The answer is")
    expected = {TaskPhase.TOKENIZING, TaskPhase.LOADING, TaskPhase.TRAINING}
    assert expected | {TaskPhase.EVALUATING, TaskPhase.SAVING} == set(seen.phases)


def test_the_best_step_is_the_result(run: Run, tiny: LocalModel, tmp_path: Path) -> None:
    """Validation rows that answer otherwise: the more is learnt, the worse they are predicted."""
    held = write_chats(tmp_path / "held.jsonl", 6, answer="0123 [more] {{curly}} (brackets) {n}")
    config = {**FAST, "max_steps": 12, "epochs": 9, "eval_steps": 1, "lr": 3e-2, "save_steps": 12}
    outcome, seen = run(config, validation=held)
    losses = seen.values("eval_loss")
    best = losses.index(min(losses)) + 1
    assert outcome.facts["best_step"] == best < 12
    assert outcome.facts["best_eval_loss"] == min(losses)
    assert _loss_of(outcome.folder, tiny, held) == pytest.approx(min(losses), rel=1e-3)
    last, seen = run({**config, "load_best_at_end": False}, "last", validation=held)
    at_end = seen.values("eval_loss")[-1]
    assert _loss_of(last.folder, tiny, held) == pytest.approx(at_end, rel=1e-3)


def _loss_of(adapter: Path | None, tiny: LocalModel, dataset: LocalDataset) -> float:
    from parsyn.plugin.batches import Collator
    from parsyn.plugin.testing_task import RecordingContext
    from parsyn.plugin.tokens import tokenise_dataset

    assert adapter is not None
    tuned = LocalModel(tiny.path, adapter=adapter)
    rows = tokenise_dataset(dataset, tuned, RecordingContext(adapter / "scored"), max_length=512)
    model, _ = loading.load_base(tuned, device="cpu", dtype=torch.float32)
    model = loading.attach_adapter(model, adapter)
    batch = Collator(rows, 0)(range(len(rows)))
    return sum(row_losses(model, batch)) / sum(rows.trained)


def test_early_stopping_works_alone(run: Run) -> None:
    config = {**FAST, "max_steps": 40, "epochs": 20, "eval_steps": 1, "lr": 0.5}
    del config["validation_split"]
    config |= {"lr_scheduler": "constant", "max_grad_norm": 0, "warmup_steps": 0}
    outcome, seen = run({**config, "early_stopping_patience": 2})
    steps = outcome.facts["steps"]
    assert outcome.facts["stopped_early"]
    assert steps == outcome.facts["best_step"] + 2 < 40
    assert seen.checkpoints[-1].step == steps
    assert any("Stopped at step" in line for line in seen.logs)


def test_an_adapter_is_trained_further(run: Run, tiny: LocalModel) -> None:
    first, seen = run({**FAST, "max_steps": 15, "epochs": 9})
    tuned = LocalModel(tiny.path, adapter=first.folder, name="tuned", context_length=512)
    second, again = run({**FAST, "lora_r": 4}, "second", model=tuned)
    assert again.values("loss")[0] == pytest.approx(seen.values("loss")[-1], abs=0.4)
    assert again.values("loss")[0] < seen.values("loss")[0] - 0.3
    assert second.folder is not None
    config = json.loads((second.folder / "adapter_config.json").read_bytes())
    assert config["r"] == 16


def test_plain_text_is_learnt_whole(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(f"The quick brown fox number {n} jumps." for n in range(16)))
    dataset = LocalDataset(path, FileFormat.TEXT, SchemaKind.TEXT, name="text.txt")
    outcome, seen = run({**FAST, "sample_prompts": 2}, dataset=dataset)
    assert outcome.facts["steps"] == 6
    assert seen.samples == []


def test_own_prompts_are_answered_without_a_validation_set(run: Run) -> None:
    config = {**FAST, "sample_prompts": ["Hello?", "And you?"], "sample_tokens": 4}
    _, seen = run({**config, "save_steps": 3})
    assert [sample["step"] for sample in seen.samples[-2:]] == [6, 6]
    assert seen.samples[0]["prompt"] == [{"role": "user", "content": "Hello?"}]
    assert seen.samples[0]["reference"] is None


def test_auto_says_what_it_came_to(run: Run) -> None:
    config = {"max_steps": 2, "sample_prompts": 0}
    outcome, seen = run(config)
    assert outcome.facts["batch_size"] * outcome.facts["gradient_accumulation_steps"] == 16
    assert outcome.facts["learning_rate"] == 2e-4
    assert outcome.facts["max_seq_length"] == 512
    assert any("rows at a time" in line for line in seen.logs)
