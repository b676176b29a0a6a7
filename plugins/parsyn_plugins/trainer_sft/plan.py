"""What `auto` comes to, before a weight is loaded: sizes, steps and intervals of one run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from parsyn_plugins.trainer_sft.params import SftParams

EFFECTIVE_BATCH = 16
EVALUATIONS = 20
LOGGED_STEPS = 1000
SPLIT_FROM_ROWS = 100
SPLIT = 0.05
MOST_SPLIT_ROWS = 500
"""A larger validation set costs more at each evaluation than it makes the loss surer."""
LONGEST = 2048


@dataclass(frozen=True)
class Batching:
    """Rows at a time on the device, and how many such batches make one update."""

    batch_size: int
    accumulation: int

    @property
    def effective(self) -> int:
        return self.batch_size * self.accumulation


@dataclass(frozen=True)
class Schedule:
    """Every count is in updates. `evaluate_every` is None without a validation set."""

    steps_per_epoch: int
    total_steps: int
    warmup_steps: int
    log_every: int
    evaluate_every: int | None
    save_every: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def max_length(params: SftParams, context_length: int | None) -> int:
    """Tokens of the longest sequence; the model's context bounds what is not asked for."""
    if params.max_seq_length != "auto":
        return params.max_seq_length
    return min(LONGEST, context_length or LONGEST)


def validation_rows(params: SftParams, rows: int, given: bool) -> int:
    """How many of `rows` are held back; none when a validation dataset is given."""
    if given or rows < 2:
        return 0
    asked = params.validation_split
    if asked == "auto":
        if rows >= SPLIT_FROM_ROWS:
            return min(max(1, round(rows * SPLIT)), MOST_SPLIT_ROWS)
        needed = params.early_stopping_patience or params.load_best_at_end is True
        return max(1, rows // 10) if needed else 0
    held = asked if isinstance(asked, int) else round(rows * asked)
    return min(held, rows - 1)


def batching(params: SftParams, fits: int, most: int) -> Batching:
    """`fits` rows are known to fit at a time; `most` is the agent's own limit.

    A larger batch that was asked for is kept in effect: fewer rows at a time, more times.
    """
    asked = params.batch_size
    wanted = params.gradient_accumulation_steps
    if asked == "auto":
        if wanted == "auto":
            size = _divisor(EFFECTIVE_BATCH, min(fits, most))
            return Batching(size, EFFECTIVE_BATCH // size)
        return Batching(max(1, min(fits, most, EFFECTIVE_BATCH // wanted)), wanted)
    size = _divisor(asked, most)
    repeat = asked // size
    if wanted == "auto":
        return Batching(size, max(1, round(EFFECTIVE_BATCH / asked)) * repeat)
    return Batching(size, wanted * repeat)


def _divisor(number: int, most: int) -> int:
    return next(size for size in range(min(number, max(1, most)), 0, -1) if number % size == 0)


def schedule(params: SftParams, rows: int, batches: Batching, *, validated: bool) -> Schedule:
    per_epoch = math.ceil(math.ceil(rows / batches.batch_size) / batches.accumulation)
    total = max(1, math.ceil(params.epochs * per_epoch))
    if params.max_steps:
        total = min(total, params.max_steps)
    evaluate = _interval(params.eval_steps, total, _evaluation_interval(total))
    return Schedule(
        steps_per_epoch=per_epoch,
        total_steps=total,
        warmup_steps=_warmup(params, total),
        log_every=_interval(params.logging_steps, total, math.ceil(total / LOGGED_STEPS)),
        evaluate_every=evaluate if validated else None,
        save_every=_interval(params.save_steps, total, evaluate),
    )


def _evaluation_interval(total: int) -> int:
    """About 20 evaluations; in short runs no more than every fifth step, but four of them."""
    return max(math.ceil(total / EVALUATIONS), min(5, math.ceil(total / 4)))


def _interval(asked: int | float | Literal["auto"], total: int, auto: int) -> int:
    if asked == "auto":
        return max(1, auto)
    return max(1, round(asked * total)) if isinstance(asked, float) else asked


def _warmup(params: SftParams, total: int) -> int:
    if params.warmup_steps is not None:
        return min(params.warmup_steps, total)
    return int(params.warmup_ratio * total)
