"""Rows of token ids as padded tensors, and which rows to score together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsyn.plugin.tokens import TokenRows
from parsyn.rows.messages import MASKED


class Collator:
    """A batch of row numbers as `input_ids` and `labels` (rows, longest), padded on the right.

    `tokens` counts the tokens that carry text, `learnt` those with a label that is predicted.
    There is no mask: under causal attention no real token sees the padding after it.
    """

    def __init__(self, rows: TokenRows, pad_id: int) -> None:
        self.rows = rows
        self.pad_id = pad_id

    def __call__(self, chosen: Sequence[int]) -> dict[str, Any]:
        import torch

        lengths = [self.rows.lengths[row] for row in chosen]
        shape = (len(chosen), max(lengths))
        ids = torch.full(shape, self.pad_id, dtype=torch.long)
        labels = torch.full(shape, MASKED, dtype=torch.long)
        for place, (row, length) in enumerate(zip(chosen, lengths, strict=True)):
            row_ids, row_labels = self.rows.row(row)
            ids[place, :length] = torch.from_numpy(row_ids.astype("int64"))
            labels[place, :length] = torch.from_numpy(row_labels.astype("int64"))
        return {
            "input_ids": ids,
            "labels": labels,
            "tokens": sum(lengths),
            "learnt": sum(self.rows.trained[row] for row in chosen),
        }


def sorted_batches(lengths: Sequence[int], most_tokens: int, most_rows: int) -> list[list[int]]:
    """Row numbers, longest first, in batches whose padded size stays within `most_tokens`."""
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batches and len(batches[-1]) < most_rows:
            longest = lengths[batches[-1][0]]
            if longest * (len(batches[-1]) + 1) <= most_tokens:
                batches[-1].append(row)
                continue
        batches.append([row])
    return batches


def pad_id_of(tokenizer: Any) -> int:
    """An id to fill up with; it is never looked at."""
    for found in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if isinstance(found, int):
            return found
        if isinstance(found, list) and found:
            return int(found[0])
    return 0
