"""The loss of the validation rows with the model as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parsyn.plugin.batches import Collator, sorted_batches
from parsyn.plugin.scoring import row_losses
from parsyn.plugin.task import TaskContext
from parsyn.wire.states import TaskPhase
from parsyn_plugins.trainer_sft.data import RunData

TOKENS_AT_A_TIME = 4096


def validation_loss(
    model: Any, data: RunData, pad_id: int, context: TaskContext, check: Callable[[], None]
) -> float:
    """Mean loss in nats a learnt token; `check` is called before each batch and may raise."""
    lengths = [data.held.lengths[row] for row in data.validation]
    batches = sorted_batches(lengths, TOKENS_AT_A_TIME, context.max_batch_size)
    collator = Collator(data.held, pad_id)
    total, learnt = 0.0, 0
    for done, batch in enumerate(batches):
        check()
        context.phase(TaskPhase.EVALUATING, done, len(batches))
        tensors = collator([data.validation[at] for at in batch])
        placed = {name: tensors[name].to(model.device) for name in ("input_ids", "labels")}
        total += sum(row_losses(model, placed))
        learnt += tensors["learnt"]
    context.phase(TaskPhase.TRAINING)
    return total / learnt
