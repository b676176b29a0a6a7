"""The rows of one run: tokenised, checked against the model, split in two."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from parsyn.plugin import loading
from parsyn.plugin.task import LocalDataset, LocalModel, TaskContext, TaskFailure
from parsyn.plugin.tokens import TokenRows, tokenise_dataset
from parsyn.plugin.trainer import TrainInputs
from parsyn.wire.states import FailureReason
from parsyn_plugins.trainer_sft import plan
from parsyn_plugins.trainer_sft.params import SftParams


@dataclass(frozen=True)
class RunData:
    """`training` are row numbers of `rows`, `validation` of `held` (which may be the same)."""

    rows: TokenRows
    training: Sequence[int]
    held: TokenRows
    validation: Sequence[int]
    max_length: int

    @property
    def lengths(self) -> list[int]:
        """Tokens of each training row."""
        return [self.rows.lengths[row] for row in self.training]


def read_data(params: SftParams, inputs: TrainInputs, context: TaskContext) -> RunData:
    """Raises TaskFailure `bad_data`, or `user_error` for a sequence beyond the context."""
    longest = _longest(params, inputs.model)
    rows = _tokenise(inputs.dataset, "train", params, inputs.model, context, longest)
    order = list(range(len(rows)))
    random.Random(params.seed).shuffle(order)
    if inputs.validation:
        held = _tokenise(inputs.validation, "validation", params, inputs.model, context, longest)
        return RunData(rows, sorted(order), held, range(len(held)), longest)
    count = plan.validation_rows(params, len(rows), given=False)
    if count:
        context.log(f"{count} of {len(rows)} rows are held back for validation.")
    return RunData(rows, sorted(order[count:]), rows, order[:count], longest)


def _longest(params: SftParams, model: LocalModel) -> int:
    limit = model.context_length or loading.context_length_of(model.path)
    longest = plan.max_length(params, limit)
    if limit and longest > limit:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            f"max_seq_length is {longest}, and the model's context is {limit} tokens.",
            advice=f"Set max_seq_length to {limit} or less.",
        )
    return longest


def _tokenise(
    dataset: LocalDataset,
    name: str,
    params: SftParams,
    model: LocalModel,
    context: TaskContext,
    longest: int,
) -> TokenRows:
    rows = tokenise_dataset(
        dataset, model, context, train_on=params.train_on, max_length=longest, name=name
    )
    context.log(
        f"{dataset.name or name}: {len(rows)} rows, {sum(rows.lengths)} tokens, "
        f"{sum(rows.trained)} of them learnt from."
    )
    if rows.truncated:
        text = f"{rows.truncated} rows were longer than {longest} tokens and cut."
        context.log(text, "warning")
    if rows.left_out:
        seen = f" For example: {rows.problems[0]}" if rows.problems else ""
        context.log(f"{rows.left_out} rows were left out.{seen}", "warning")
    return rows
