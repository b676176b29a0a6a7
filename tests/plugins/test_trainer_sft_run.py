"""Whole runs of the trainer on a tiny model."""

from __future__ import annotations

from parsyn.wire.states import TaskPhase
from tests.plugins.conftest import Run

FAST = {"epochs": 2, "batch_size": 4, "gradient_accumulation_steps": 2, "lr": 1e-2}


def test_lora_learns_and_leaves_a_loadable_adapter(run: Run) -> None:
    outcome, seen = run({**FAST, "validation_split": 4, "sample_tokens": 8, "epochs": 4})
    losses = seen.values("loss")
    assert losses[-1] < losses[0] * 0.9
    assert outcome.facts["steps"] == len(losses)
    print(seen.logs, seen.phases, seen.metrics, seen.samples[:1], outcome)
    assert outcome.folder is not None
    print(sorted(p.name for p in outcome.folder.iterdir()))
    assert TaskPhase.TRAINING in seen.phases
