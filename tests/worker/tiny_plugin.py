"""A trainer of a few lines, installed for tests only by `conftest.install_tiny_plugin`."""

from __future__ import annotations

import os
import signal
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


class TinyParams(PluginParams):
    steps: int = 3
    checkpoint_every: int = 0
    gate: str | None = None
    """A file that must exist before step `gate_at` begins."""
    gate_at: int = 2
    ends: str = "well"
    ignores_cancel: bool = False


class TinyTrainer(Trainer[TinyParams]):
    """ "Trains" by counting: metrics, checkpoints and a result, without torch."""

    name = "tiny"
    title = "Tiny"
    Params = TinyParams
    accepts = frozenset({SchemaKind.TEXT})

    def train(self, params: TinyParams, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
        rows = inputs.dataset.path.read_text().splitlines()
        context.log(f"{len(rows)} rows of {inputs.dataset.name} for {inputs.model.name}")
        first = int((inputs.resume / "step.txt").read_text()) + 1 if inputs.resume else 1
        context.phase(TaskPhase.TRAINING)
        for step in range(first, params.steps + 1):
            self._wait(params, context, step)
            context.metric(step, {"loss": 1.0 / step})
            context.progress(step, params.steps)
            if params.checkpoint_every and step % params.checkpoint_every == 0:
                folder = context.folder / f"checkpoint-{step}"
                folder.mkdir()
                (folder / "step.txt").write_text(str(step))
                (folder / "adapter.bin").write_bytes(os.urandom(2000))
                context.checkpoint(step, folder, metrics={"loss": 1.0 / step})
        return _end(params, context)

    def _wait(self, params: TinyParams, context: TaskContext, step: int) -> None:
        while params.gate and step == params.gate_at and not Path(params.gate).exists():
            if context.cancelled() and not params.ignores_cancel:
                raise TaskCancelled
            time.sleep(0.01)


def _end(params: TinyParams, context: TaskContext) -> TaskOutcome:
    if params.ends == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if params.ends == "exits":
        print("the last line that it said", file=sys.stderr, flush=True)
        os._exit(3)
    if params.ends == "raises":
        raise RuntimeError("it broke in the middle")
    if params.ends == "nan":
        context.metric(params.steps, {"loss": float("nan")})
    if params.ends == "bad_data":
        from parsyn.errors import ErrorCode, ParsynError

        raise ParsynError(ErrorCode.BAD_DATA, "Row 3 has no answer.")
    print("said on stdout", flush=True)
    folder = context.folder / "model"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"w" * 5000)
    (folder / "config.json").write_text("{}")
    return TaskOutcome(folder=folder, facts={"steps": params.steps})


@hookimpl
def register_trainers() -> Sequence[type[Trainer[Any]]]:
    return [TinyTrainer]
