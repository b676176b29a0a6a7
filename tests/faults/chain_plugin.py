"""A trainer whose result is a chain of hashes, one link a step, installed for real processes only.

Where a step is lost, doubled or taken from another run, the result is another.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parsyn.plugin import hookimpl
from parsyn.plugin.params import PluginParams
from parsyn.plugin.task import TaskCancelled, TaskContext, TaskOutcome
from parsyn.plugin.trainer import Trainer, TrainInputs
from parsyn.wire.states import SchemaKind, TaskPhase


class ChainParams(PluginParams):
    max_steps: int = 12
    save_steps: int = 3
    pace: float = 0.1
    """Seconds a step takes."""
    weight: int = 0
    """Bytes that a checkpoint has besides its state."""
    stubborn: bool = False
    """Ignores the request to stop, and has a child that does too."""


class ChainTrainer(Trainer[ChainParams]):
    name = "chain"
    title = "Chain"
    Params = ChainParams
    accepts = frozenset(SchemaKind)

    def train(self, params: ChainParams, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
        state, first = _begin(inputs.resume)
        if params.stubborn:
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        context.phase(TaskPhase.TRAINING)
        for step in range(first, params.max_steps + 1):
            time.sleep(params.pace)
            if context.cancelled() and not params.stubborn:
                raise TaskCancelled
            state = hashlib.sha256(state + step.to_bytes(4)).digest()
            context.log(f"step {step}")
            context.metric(step, {"loss": int.from_bytes(state[:4]) / 2**32})
            context.progress(step, params.max_steps)
            if step % params.save_steps == 0:
                folder = context.folder / f"checkpoint-{step}"
                folder.mkdir()
                (folder / "state.txt").write_text(f"{step} {state.hex()}")
                (folder / "optimizer.bin").write_bytes(os.urandom(64 + params.weight))
                context.checkpoint(step, folder)
        folder = context.folder / "model"
        folder.mkdir()
        (folder / "adapter_config.json").write_text("{}")
        (folder / "adapter_model.safetensors").write_bytes(state)
        return TaskOutcome(folder=folder, facts={"steps": params.max_steps})


def _begin(resume: Path | None) -> tuple[bytes, int]:
    if resume is None:
        return b"begin", 1
    step, _, text = (resume / "state.txt").read_text().partition(" ")
    return bytes.fromhex(text), int(step) + 1


@hookimpl
def register_trainers() -> Sequence[type[Trainer[Any]]]:
    return [ChainTrainer]


def _note(event: dict[str, Any]) -> None:
    path = os.environ.get("CHAIN_EFFECTS")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps(event) + "\n")


@hookimpl
def job_changed(event: dict[str, Any]) -> None:
    _note(event)


@hookimpl
def artifact_stored(event: dict[str, Any]) -> None:
    _note(event)
