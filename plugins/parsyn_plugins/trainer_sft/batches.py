"""Which rows go together: batches of like length, so that little of them is padding."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

SORTED_BATCHES = 64
"""Rows are sorted inside groups of this many batches: order stays random between groups."""


class LengthGroupedBatches:
    """One epoch's batches of row numbers, each row once; the same seed and epoch, the same order.

    `set_epoch` and `batch_sampler` are what the training loop looks for to move to an epoch.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths = lengths
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    @property
    def batch_sampler(self) -> LengthGroupedBatches:
        return self

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        order = random.Random(f"{self.seed}:{self.epoch}")
        rows = list(range(len(self.lengths)))
        order.shuffle(rows)
        group = self.batch_size * SORTED_BATCHES
        batches = []
        for start in range(0, len(rows), group):
            # A stable sort keeps the shuffled order between rows of equal length.
            near = sorted(rows[start : start + group], key=self.lengths.__getitem__)
            batches += [
                near[at : at + self.batch_size] for at in range(0, len(near), self.batch_size)
            ]
        order.shuffle(batches)
        yield from batches
