"""Choose the next token from logits: greedy, or temperature with top_k and top_p."""

from __future__ import annotations

from typing import Any

from parsyn.wire.worker import Sampling

NUCLEUS = 1024
"""Candidates looked at first for top_p; sorting a whole vocabulary for each token is slow."""


class Chooser:
    """One answer's sampling; with a seed the same logits give the same tokens."""

    def __init__(self, sampling: Sampling, device: Any) -> None:
        import torch

        self.torch, self.sampling = torch, sampling
        self.random = torch.Generator(device=device)
        if sampling.seed is None:
            self.random.seed()
        else:
            self.random.manual_seed(sampling.seed % 2**63)

    def choose(self, logits: Any) -> int:
        """`logits`: one vector over the vocabulary, of any dtype."""
        if self.sampling.temperature == 0:
            return int(logits.argmax())
        scores = logits.float() / self.sampling.temperature
        top_k = self.sampling.top_k
        if 0 < top_k < scores.numel():
            values, ids = scores.topk(top_k)
            return self._draw(values.softmax(-1), ids)
        if self.sampling.top_p < 1:
            return self._nucleus(scores)
        return self._pick(scores.softmax(-1))

    def _nucleus(self, scores: Any) -> int:
        probabilities = scores.softmax(-1)
        count = min(NUCLEUS, probabilities.numel())
        values, ids = probabilities.topk(count)
        if values.sum() < self.sampling.top_p:
            values, ids = probabilities.sort(descending=True)
        return self._draw(values, ids)

    def _draw(self, probabilities: Any, ids: Any) -> int:
        """`probabilities` descend. Keeps the smallest set whose mass reaches top_p."""
        if self.sampling.top_p < 1:
            before = probabilities.cumsum(-1) - probabilities
            probabilities = probabilities.masked_fill(before >= self.sampling.top_p, 0)
        return int(ids[self._pick(probabilities)])

    def _pick(self, probabilities: Any) -> int:
        return int(self.torch.multinomial(probabilities, 1, generator=self.random))
