"""Score every row, then work out perplexity and how sure it is."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from parsyn.plugin import loading
from parsyn.plugin.batches import Collator, pad_id_of, sorted_batches
from parsyn.plugin.scoring import row_losses
from parsyn.plugin.task import (
    LocalDataset,
    LocalModel,
    TaskCancelled,
    TaskContext,
    TaskFailure,
    TaskOutcome,
)
from parsyn.plugin.tokens import TokenRows, tokenise_dataset
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_plugins.evaluator_perplexity.params import PerplexityParams

LONGEST = 2048
TOKENS_AT_A_TIME = 8192


def measure(
    params: PerplexityParams, model: LocalModel, dataset: LocalDataset, context: TaskContext
) -> TaskOutcome:
    """See `Evaluator.evaluate`. Perplexity is exp of the mean loss over all scored tokens."""
    rows = _rows(params, model, dataset, context)
    chosen = list(range(len(rows)))
    if params.max_rows and params.max_rows < len(chosen):
        chosen = sorted(random.Random(params.seed).sample(chosen, params.max_rows))
    losses = _score(model, rows, chosen, context)
    counts = [rows.trained[row] for row in chosen]
    mean, stderr = mean_loss(losses, counts)
    return TaskOutcome(
        facts={
            "metrics": {
                "perplexity": _metric(math.exp(min(mean, 700.0)), mean, stderr),
                "loss": {"value": mean, "stderr": stderr, "better": "lower"},
            },
            "rows": len(chosen),
            "tokens": sum(counts),
        }
    )


def mean_loss(losses: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    """Mean loss per token and its standard error, with rows as clusters (a ratio estimate).

    Cochran, Sampling Techniques (1977), chapter 6: var = n/(n-1) * sum((y - m x)^2) / (sum x)^2.
    """
    tokens, rows = sum(counts), len(counts)
    mean = sum(losses) / tokens
    if rows < 2:
        return mean, 0.0
    spread = sum((y - mean * x) ** 2 for y, x in zip(losses, counts, strict=True))
    return mean, math.sqrt(rows / (rows - 1) * spread) / tokens


def _metric(value: float, mean: float, stderr: float) -> dict[str, Any]:
    # The delta method: d exp(m) = exp(m) dm.
    return {"value": value, "stderr": value * stderr, "better": "lower"}


def _rows(
    params: PerplexityParams, model: LocalModel, dataset: LocalDataset, context: TaskContext
) -> TokenRows:
    limit = model.context_length or loading.context_length_of(model.path)
    longest = params.max_seq_length or min(LONGEST, limit or LONGEST)
    if limit and longest > limit:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            f"max_seq_length is {longest}, and the model's context is {limit} tokens.",
            advice=f"Set max_seq_length to {limit} or less.",
        )
    rows = tokenise_dataset(
        dataset, model, context, train_on=params.train_on, max_length=longest, name="scored"
    )
    if rows.left_out:
        seen = f" For example: {rows.problems[0]}" if rows.problems else ""
        context.log(f"{rows.left_out} rows were left out.{seen}", "warning")
    return rows


def _score(
    source: LocalModel, rows: TokenRows, chosen: Sequence[int], context: TaskContext
) -> list[float]:
    """The summed loss of each chosen row, in the order of `chosen`."""
    context.phase(TaskPhase.LOADING)
    model, tokenizer = loading.load_base(
        source,
        device=context.device,
        dtype=loading.pick_dtype(context.device),
        trust_remote_code=context.trust_remote_code,
    )
    if source.adapter:
        model = loading.attach_adapter(model, source.adapter)
    collator = Collator(rows, pad_id_of(tokenizer))
    lengths = [rows.lengths[row] for row in chosen]
    found = [0.0] * len(chosen)
    done = 0
    for batch in sorted_batches(lengths, TOKENS_AT_A_TIME, context.max_batch_size):
        if context.cancelled():
            raise TaskCancelled
        context.phase(TaskPhase.EVALUATING, done, len(chosen))
        tensors = collator([chosen[at] for at in batch])
        placed = {name: tensors[name].to(context.device) for name in ("input_ids", "labels")}
        for at, loss in zip(batch, row_losses(model, placed), strict=True):
            found[at] = loss
        done += len(batch)
        context.progress(done, len(chosen))
    return found
