"""Rows one after another in a single sequence, without padding and without seeing one another.

Positions start again at 0 with each row. Attention implementations that know what that means keep
the rows apart; `keeps_rows_apart` proves it on the loaded model before a run relies on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from parsyn.plugin.batches import Collator
from parsyn.plugin.scoring import base_of, last_states
from parsyn.plugin.task import TaskFailure
from parsyn.rows.messages import MASKED
from parsyn.wire.states import FailureReason

PROBE_ROWS = ((5, 9, 7, 11, 6, 8, 3), (4, 10, 12, 6, 9), (8, 3, 5))
TOLERANCE = 0.05
"""Of the states' own spread: rounding stays below it, a neighbour's influence far above."""


class PackingCollator(Collator):
    """As `Collator`, but one sequence (1, tokens) with `position_ids`; nothing is padding."""

    def __call__(self, chosen: Sequence[int]) -> dict[str, Any]:
        rows = [self.rows.row(row) for row in chosen]
        ids = [torch.from_numpy(ids.astype("int64")) for ids, _ in rows]
        labels = [torch.from_numpy(labels.astype("int64")) for _, labels in rows]
        for row in labels:
            # The last token of the row before must not be asked for this row's first.
            row[0] = MASKED
        batch = {
            "input_ids": torch.cat(ids)[None],
            "labels": torch.cat(labels)[None],
            "position_ids": positions([len(row) for row in ids]),
        }
        return {
            **batch,
            "tokens": batch["input_ids"].numel(),
            "learnt": sum(self.rows.trained[row] for row in chosen),
        }


def positions(lengths: Sequence[int]) -> Any:
    """(1, total): 0, 1, 2, ... for each row anew."""
    return torch.cat([torch.arange(length) for length in lengths])[None]


@torch.no_grad()
def keeps_rows_apart(model: Any) -> bool:
    """Whether rows packed together get the states that each gets alone."""
    device = next(model.parameters()).device
    vocabulary = base_of(model).get_input_embeddings().weight.shape[0]
    rows = [torch.tensor([[id_ % vocabulary for id_ in row]]) for row in PROBE_ROWS]
    training = model.training
    model.eval()
    try:
        alone = torch.cat([last_states(model, row.to(device)) for row in rows], dim=1)
        packed = last_states(
            model,
            torch.cat(rows, dim=1).to(device),
            position_ids=positions([row.shape[1] for row in rows]).to(device),
        )
    except (RuntimeError, TypeError, ValueError):
        return False
    finally:
        model.train(training)
    worst = (alone.float() - packed.float()).abs().max()
    return bool(worst < TOLERANCE * alone.float().std())


def choose_packing(model: Any, asked: bool | Literal["auto"]) -> bool:
    """Packing changes no result, so it is a matter of what is proven and what is faster."""
    if asked is False or (asked == "auto" and not is_free(model)):
        return False
    if keeps_rows_apart(model):
        return True
    if asked is True:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            "Packing is not possible with this model: rows in one sequence see one another.",
            advice='Set packing to "auto" or false.',
        )
    return False


def is_free(model: Any) -> bool:
    """Whether attention takes rows apart without computing what lies between them."""
    used = getattr(base_of(model).config, "_attn_implementation", "") or ""
    return "flash" in used or "flex" in used
