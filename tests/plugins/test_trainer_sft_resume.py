"""A run that was interrupted goes on as if it never was, bit for bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from parsyn.plugin.task import TaskCancelled, TaskFailure
from tests.plugins.conftest import Run, write_chats

CONFIG: dict[str, Any] = {
    "batch_size": 4,
    "gradient_accumulation_steps": 2,
    "epochs": 4,
    "lr": 1e-2,
    "lora_dropout": 0.1,
    "save_steps": 1,
    "eval_steps": 2,
    "validation_split": 4,
    "sample_prompts": 0,
}


@pytest.mark.parametrize(
    ("method", "precision"), [("lora", "bf16"), ("lora", "no"), ("full", "bf16")]
)
@pytest.mark.parametrize("interrupted", [3, 5])
def test_a_resumed_run_is_the_uninterrupted_one(
    run: Run, method: str, precision: str, interrupted: int
) -> None:
    """3 is the end of an epoch, 5 the middle of one, and another step than the best so far."""
    config = {**CONFIG, "method": method, "mixed_precision": precision, "lr": 3e-3}
    if method == "full":
        del config["lora_dropout"]
    whole, seen = run(config, "whole")
    checkpoint = next(c for c in seen.checkpoints if c.step == interrupted)
    resumed, again = run(config, "resumed", resume=checkpoint.folder)
    assert again.metrics == [] or again.metrics[0][0] == interrupted + 1
    assert _without_speed(again.metrics) == [
        point for point in _without_speed(seen.metrics) if point[0] > interrupted
    ]
    assert resumed.folder is not None
    assert whole.folder is not None
    for path in whole.folder.glob("*.safetensors"):
        left, right = load_file(path), load_file(resumed.folder / path.name)
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)
    for name in ("best_step", "best_eval_loss", "trained_tokens", "steps", "final_loss"):
        assert whole.facts[name] == resumed.facts[name], name


def _without_speed(metrics: list[tuple[int, dict[str, float]]]) -> list[tuple[int, Any]]:
    return [
        (step, {name: value for name, value in values.items() if name != "tokens_per_second"})
        for step, values in metrics
    ]


def test_a_checkpoint_holds_everything_and_is_no_pickle_of_ours(run: Run) -> None:
    _, seen = run({**CONFIG, "epochs": 1})
    names = {path.name for path in seen.checkpoints[-1].folder.iterdir()}
    assert names >= {
        "adapter_config.json",
        "adapter_model.safetensors",
        "optimizer.pt",
        "scheduler.pt",
        "rng_state.pth",
        "trainer_state.json",
        "run.json",
    }
    assert "training_args.bin" not in names
    assert "README.md" not in names
    for name in ("optimizer.pt", "scheduler.pt"):
        torch.load(seen.checkpoints[-1].folder / name, weights_only=True)


def test_the_best_weights_travel_with_later_checkpoints(run: Run, tmp_path: Path) -> None:
    held = write_chats(tmp_path / "held.jsonl", 6, answer="0123 [more] {{curly}} (brackets) {n}")
    config = {**CONFIG, "epochs": 6, "eval_steps": 1, "lr": 3e-2, "mixed_precision": "no"}
    whole, seen = run(config, "whole", validation=held)
    best = whole.facts["best_step"]
    later = next(c for c in seen.checkpoints if c.step == best + 2)
    assert not later.best
    assert (later.folder / "best" / "adapter_model.safetensors").is_file()
    resumed, _ = run(config, "resumed", resume=later.folder, validation=held)
    assert resumed.facts["best_step"] == best
    assert whole.folder is not None
    assert resumed.folder is not None
    name = "adapter_model.safetensors"
    assert (whole.folder / name).read_bytes() == (resumed.folder / name).read_bytes()


def test_a_finished_run_resumed_gives_its_result_again(run: Run) -> None:
    whole, seen = run({**CONFIG, "epochs": 1}, "whole")
    resumed, again = run({**CONFIG, "epochs": 1}, "again", resume=seen.checkpoints[-1].folder)
    assert again.values("loss") == []
    assert resumed.facts["steps"] == whole.facts["steps"]
    assert resumed.facts["final_loss"] == whole.facts["final_loss"]


def test_a_cancelled_run_can_be_resumed(run: Run, tmp_path: Path) -> None:
    config = {**CONFIG, "epochs": 2}
    whole, _ = run(config, "whole")
    with pytest.raises(TaskCancelled):
        run(config, "stopped", cancel_when=lambda seen: len(seen.steps) == 3)
    checkpoint = tmp_path / "stopped-checkpoint-3"
    resumed, _ = run(config, "resumed", resume=checkpoint)
    assert resumed.facts["final_loss"] == whole.facts["final_loss"]


def test_a_resumed_run_keeps_its_sizes_and_precision(run: Run) -> None:
    """On another agent `auto` may come to something else; what was begun is gone on with."""
    begun = {**CONFIG, "epochs": 2, "mixed_precision": "no"}
    whole, seen = run(begun, "whole")
    other = {**begun, "mixed_precision": "bf16", "batch_size": "auto"}
    resumed, _ = run({**other, "gradient_accumulation_steps": "auto"}, "other",
                     resume=seen.checkpoints[1].folder)  # fmt: skip
    for name in ("precision", "batch_size", "gradient_accumulation_steps", "final_loss"):
        assert resumed.facts[name] == whole.facts[name]


def test_a_checkpoint_of_another_run_is_refused(run: Run, tmp_path: Path) -> None:
    _, seen = run({**CONFIG, "epochs": 1}, "whole")
    folder = seen.checkpoints[-1].folder
    with pytest.raises(TaskFailure, match="another run"):
        run({**CONFIG, "epochs": 2}, "longer", resume=folder)
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "run.json").write_text(json.dumps({"record": {}}))
    with pytest.raises(TaskFailure, match="cannot be resumed"):
        run({**CONFIG, "epochs": 1}, "damaged", resume=broken)
