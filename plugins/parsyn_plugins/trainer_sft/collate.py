"""Rows of token ids as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from parsyn.plugin.tokens import TokenRows
from parsyn.rows.messages import MASKED


class RowsDataset(torch.utils.data.Dataset):
    """Hands out row numbers; `Collator` fetches the rows themselves, once, into the batch."""

    def __init__(self, rows: TokenRows, chosen: Sequence[int]) -> None:
        self.rows = rows
        self.chosen = chosen
        self.lengths = [rows.lengths[row] for row in chosen]

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, index: int) -> int:
        return self.chosen[index]


class Collator:
    """A batch: `input_ids`, `labels`, `attention_mask` (rows, longest), padded on the right.

    `tokens` counts the tokens that carry text, `learnt` those with a label that is predicted.
    A batch without padding has no mask: attention is then causal, which is faster.
    """

    def __init__(self, rows: TokenRows, pad_id: int) -> None:
        self.rows = rows
        self.pad_id = pad_id

    def __call__(self, chosen: Sequence[int]) -> dict[str, Any]:
        lengths = [self.rows.lengths[row] for row in chosen]
        shape = (len(chosen), max(lengths))
        ids = torch.full(shape, self.pad_id, dtype=torch.long)
        labels = torch.full(shape, MASKED, dtype=torch.long)
        mask = torch.zeros(shape, dtype=torch.long)
        for place, (row, length) in enumerate(zip(chosen, lengths, strict=True)):
            row_ids, row_labels = self.rows.row(row)
            ids[place, :length] = torch.from_numpy(row_ids.astype("int64"))
            labels[place, :length] = torch.from_numpy(row_labels.astype("int64"))
            mask[place, :length] = 1
        batch: dict[str, Any] = {"input_ids": ids, "labels": labels}
        if min(lengths) < shape[1]:
            batch["attention_mask"] = mask
        batch["tokens"] = sum(lengths)
        batch["learnt"] = sum(self.rows.trained[row] for row in chosen)
        return batch
