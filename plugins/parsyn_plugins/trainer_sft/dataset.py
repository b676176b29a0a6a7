"""The rows as the data loader wants to see them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from parsyn.plugin.tokens import TokenRows


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
