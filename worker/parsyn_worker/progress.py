"""How far a task is: percent of the whole and seconds to go, worked out from its reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from parsyn.wire.states import TaskPhase
from parsyn.wire.worker import State, TaskKey

_BEFORE = {TaskPhase.DOWNLOADING, TaskPhase.LOADING, TaskPhase.TOKENIZING}


@dataclass
class Progress:
    """Collects phases and steps of one attempt. Times are seconds since the epoch."""

    phase: TaskPhase = TaskPhase.DOWNLOADING
    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    _percent: float = 0.0
    _first: tuple[int, float] | None = field(default=None, repr=False)
    _eta: float | None = None

    def enter(self, phase: TaskPhase, done: int | None, total: int | None) -> None:
        self.phase = phase
        if self.total_steps is None and phase not in _BEFORE and done is not None and total:
            self._reach(99.0 * done / total)
        elif self._is_nearly_over(phase):
            self._reach(99.0)
            self._eta = None

    def advance(self, step: int, total_steps: int, epoch: float | None, at: float) -> None:
        """A step ended. The ETA is the mean pace of this attempt, evaluations included."""
        self.step, self.total_steps, self.epoch = step, total_steps, epoch
        self._percent = min(99.0, 100.0 * step / max(1, total_steps))
        if self._first is None:
            self._first = (step, at)
        first_step, first_at = self._first
        if step > first_step:
            pace = (at - first_at) / (step - first_step)
            self._eta = max(0.0, pace * (total_steps - step))

    def state(self, key: TaskKey, seq: int, at: float) -> State:
        return State(
            task_id=key.task_id,
            attempt=key.attempt,
            seq=seq,
            at=at,
            phase=self.phase,
            step=self.step,
            total_steps=self.total_steps,
            epoch=self.epoch,
            percent=round(self._percent, 2),
            eta=None if self._eta is None else round(self._eta, 1),
        )

    def _is_nearly_over(self, phase: TaskPhase) -> bool:
        """A checkpoint in mid-run is saved too: only after the last step is that the end."""
        is_saving_last = phase is TaskPhase.SAVING and self.step == self.total_steps
        return is_saving_last or phase is TaskPhase.UPLOADING

    def _reach(self, percent: float) -> None:
        self._percent = max(self._percent, min(percent, 99.0))
