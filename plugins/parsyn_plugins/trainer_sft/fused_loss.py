"""Cross-entropy of a language model without ever holding all logits.

Only positions that are learnt from are projected to the vocabulary, a few at a time, and their
gradient is worked out in the same pass: nothing is computed for masked tokens, twice, or kept.
The same two buffers serve every part: fresh ones of that size cost a page fault for each 4 KiB.
"""

from __future__ import annotations

from typing import Any

import torch

CHUNK = 256
"""Positions at a time on a CPU: 256 x 50 000 float32 logits are 50 MB."""
CHUNK_GPU = 1024
LEAST = 1e-38
"""Probabilities are at least this in the loss: a token's loss is capped at 87.5, its gradient is
exact, and a loss that is no number stays none."""


class _HeadLoss(torch.autograd.Function):
    """Sum of -log p(label) over positions, with d/d hidden and, when it learns, d/d weight."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Any, weight: Any, bias: Any, labels: Any, divisor: Any, needs_grad: bool
    ) -> Any:
        count, chunk = hidden.shape[0], CHUNK_GPU if hidden.is_cuda else CHUNK
        shape = min(chunk, count), weight.shape[0]
        logits = hidden.new_empty(shape)
        odds = hidden.new_empty(shape, dtype=torch.float32)
        grads = _Gradients(hidden, weight, bias, needs_grad)
        loss = hidden.new_zeros((), dtype=torch.float32)
        for start in range(0, count, chunk):
            part = hidden[start : start + chunk]
            wanted = labels[start : start + chunk, None]
            logit, odd = logits[: len(part)], odds[: len(part)]
            torch.mm(part, weight.t(), out=logit)
            if bias is not None:
                logit += bias
            torch.softmax(logit, -1, dtype=torch.float32, out=odd)
            right = odd.gather(1, wanted)
            loss -= right.clamp_min(LEAST).log().sum()
            if needs_grad:
                # d loss / d logits = softmax - one-hot
                odd.scatter_add_(1, wanted, torch.full_like(right, -1.0))
                grads.add(start, part, logit.copy_(odd), odd)
        ctx.save_for_backward(grads.hidden, grads.weight, grads.bias)
        ctx.divisor = divisor
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        return loss / divisor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        hidden, weight, bias = ctx.saved_tensors
        scale = grad / ctx.divisor
        weight_dtype, bias_dtype = ctx.dtypes
        if weight is not None:
            weight = (weight * scale).to(weight_dtype)
        if bias is not None:
            bias = (bias * scale).to(bias_dtype)
        return hidden * scale.to(hidden.dtype), weight, bias, None, None, None


class _Gradients:
    """Before the division; the weight's and the bias's are summed in 32 bit over the parts."""

    def __init__(self, hidden: Any, weight: Any, bias: Any, needed: bool) -> None:
        self.head = weight
        self.hidden = torch.empty_like(hidden)
        self.weight = _zeros(weight) if needed and weight.requires_grad else None
        self.bias = _zeros(bias) if needed and bias is not None and bias.requires_grad else None

    def add(self, start: int, part: Any, slope: Any, slope_32: Any) -> None:
        torch.mm(slope, self.head, out=self.hidden[start : start + len(part)])
        if self.weight is not None:
            self.weight += slope.t() @ part
        if self.bias is not None:
            self.bias += slope_32.sum(0)


def _zeros(like: Any) -> Any:
    return torch.zeros_like(like, dtype=torch.float32)


def head_loss(hidden: Any, head: Any, labels: Any, divisor: Any) -> Any:
    """Sum of the token losses divided by `divisor`, float32, differentiable.

    `hidden` (rows, length, size) are the backbone's last states, `labels` (rows, length) the ids
    or -100; position t predicts label t+1. `head` is the linear layer to the vocabulary.
    """
    wanted = labels[:, 1:]
    learnt = wanted != -100
    states = hidden[:, :-1][learnt]
    if states.dtype != head.weight.dtype:
        states = states.to(head.weight.dtype)
    with torch.autocast(states.device.type, enabled=False):
        return _HeadLoss.apply(
            states, head.weight, head.bias, wanted[learnt], divisor, torch.is_grad_enabled()
        )
