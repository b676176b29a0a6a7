"""What happens after which step: reports, evaluation, samples, checkpoints, early stopping."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import TrainerCallback

from parsyn.plugin.task import TaskCancelled, TaskContext, TaskFailure
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_plugins.trainer_sft.plan import Schedule

CHARTED = ("loss", "learning_rate", "grad_norm")
SAMPLE_SHARE = 0.1
"""At most this part of the time goes to sample answers, but for the first and the last ones."""


@dataclass
class Course:
    """How far the run has come; saved with each checkpoint and taken up on resume."""

    best_loss: float | None = None
    best_step: int | None = None
    without_better: int = 0
    tokens: int = 0
    last_loss: float | None = None
    last_eval_loss: float | None = None
    stopped_early: bool = False


class Progress(TrainerCallback):
    """Sets the loop's flags by the schedule and tells the agent what is going on."""

    def __init__(
        self,
        context: TaskContext,
        schedule: Schedule,
        course: Course,
        *,
        patience: int | None,
        on_better: Callable[[], None] | None,
        answer_samples: Callable[[int], None] | None,
    ) -> None:
        self.context = context
        self.schedule = schedule
        self.course = course
        self.patience = patience
        self.on_better = on_better
        self.answer_samples = answer_samples
        self.started = self.step_started = time.monotonic()
        self.window_tokens = 0
        self.window_seconds = 0.0
        self.sample_seconds = 0.0
        self.sampled = 0

    def tokens_in_step(self, tokens: int) -> None:
        """Told before a step's first batch: how many of its tokens carry text."""
        self.course.tokens += tokens
        self.window_tokens += tokens

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self.stop_if_cancelled()
        self.step_started = time.monotonic()
        return control

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self.stop_if_cancelled()
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self.window_seconds += time.monotonic() - self.step_started
        step, plan = state.global_step, self.schedule
        last = step >= plan.total_steps
        self.context.progress(step, plan.total_steps, state.epoch)
        control.should_log = last or step == 1 or step % plan.log_every == 0
        if plan.evaluate_every:
            control.should_evaluate = last or step % plan.evaluate_every == 0
        elif self.answer_samples and (last or step % plan.save_every == 0):
            self._samples(step)
        control.should_save = last or step % plan.save_every == 0
        control.should_training_stop = control.should_training_stop or last
        return control

    def report(self, state: Any, logs: dict[str, float]) -> None:
        """One point of the charts, over the steps since the last one."""
        values = {name: value for name, value in logs.items() if name in CHARTED}
        step = state.global_step
        if not all(map(math.isfinite, (values["loss"], values.get("grad_norm", 0.0)))):
            raise _diverged(step, values)
        self.course.last_loss = values["loss"]
        if self.window_seconds > 0:
            values["tokens_per_second"] = self.window_tokens / self.window_seconds
        if state.epoch is not None:
            values["epoch"] = state.epoch
        self.window_tokens, self.window_seconds = 0, 0.0
        self.context.metric(step, values)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any
    ) -> Any:
        loss, step = metrics["eval_loss"], state.global_step
        if not math.isfinite(loss):
            raise _diverged(step, metrics)
        self.course.last_eval_loss = loss
        self.context.metric(step, metrics)
        self._compare(loss, step)
        if self.answer_samples:
            self._samples(step)
        if self.patience and self.course.without_better >= self.patience:
            self.course.stopped_early = True
            # What was reached is kept: the run can be looked at, and gone on with.
            control.should_save = True
            control.should_training_stop = True
            self.context.log(
                f"Stopped at step {step}: {self.course.without_better} evaluations in a row "
                f"brought no validation loss below {self.course.best_loss:.4f}."
            )
        return control

    def _compare(self, loss: float, step: int) -> None:
        course = self.course
        if course.best_loss is None or loss < course.best_loss:
            course.best_loss, course.best_step, course.without_better = loss, step, 0
            if self.on_better:
                self.on_better()
        else:
            course.without_better += 1

    def _samples(self, step: int) -> None:
        spent = self.sample_seconds / max(1e-9, time.monotonic() - self.started)
        last = step >= self.schedule.total_steps
        if self.sampled and not last and spent > SAMPLE_SHARE:
            return
        begun = time.monotonic()
        assert self.answer_samples is not None
        self.answer_samples(step)
        self.context.phase(TaskPhase.TRAINING)
        self.sampled += 1
        self.sample_seconds += time.monotonic() - begun

    def stop_if_cancelled(self) -> None:
        if self.context.cancelled():
            raise TaskCancelled


def _diverged(step: int, values: dict[str, float]) -> TaskFailure:
    name = next(key for key, value in values.items() if not math.isfinite(value))
    return TaskFailure(
        FailureReason.DIVERGED,
        f"The run diverged: `{name}` became {values[name]} at step {step}.",
        line=f"step {step}: {name} = {values[name]}",
        advice="Lower learning_rate, raise warmup_ratio, or look for broken rows in the dataset.",
    )
