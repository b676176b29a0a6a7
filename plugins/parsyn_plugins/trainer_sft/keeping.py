"""What is kept of a run while it goes on: the best weights so far, and checkpoints."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from parsyn.plugin.task import TaskContext
from parsyn.wire.states import TaskPhase
from parsyn_plugins.trainer_sft import checkpoints
from parsyn_plugins.trainer_sft.checkpoints import RunRecord
from parsyn_plugins.trainer_sft.progress import Course


class Keeper:
    """Hands complete checkpoints to the agent and has the best weights at hand at the end."""

    def __init__(
        self, model: Any, context: TaskContext, record: RunRecord, course: Course, epoch_steps: int
    ) -> None:
        self.model, self.context = model, context
        self.record, self.course, self.epoch_steps = record, course, epoch_steps
        self.best = context.folder / "best"

    def take_up(self, checkpoint: Path) -> None:
        """After a resume: the best weights so far are in the checkpoint, beside or as its own."""
        if self.course.best_step is None:
            return
        saved = checkpoint / "best"
        source = saved if saved.is_dir() else checkpoint
        self.best.mkdir()
        for path in source.iterdir():
            if path.suffix in (".safetensors", ".json"):
                shutil.copyfile(path, self.best / path.name)

    def keep_best(self) -> None:
        checkpoints.keep_best(self.model, self.best)

    def use_best(self, steps: int) -> None:
        """Put the best weights back, when the run ended on others."""
        step = self.course.best_step
        if self.best.is_dir() and step not in (None, steps):
            checkpoints.load_weights(self.model, self.best)
            self.context.log(f"The result is step {step}, the best by validation loss.")

    def hand_over(self, folder: Path, step: int) -> None:
        """Complete a folder that holds weights and optimizer, and give it to the agent."""
        self.context.phase(TaskPhase.SAVING)
        course = self.course
        checkpoints.write_run(folder, self.record, course)
        is_best = course.best_step == step
        if self.best.is_dir() and not is_best:
            shutil.copytree(self.best, folder / "best", copy_function=os.link)
        checkpoints.sync(folder)
        metrics = {"loss": course.last_loss, "eval_loss": course.last_eval_loss}
        self.context.checkpoint(
            step,
            folder,
            epoch=step / self.epoch_steps,
            metrics={name: value for name, value in metrics.items() if value is not None},
            best=is_best,
        )
        self.context.phase(TaskPhase.TRAINING)
