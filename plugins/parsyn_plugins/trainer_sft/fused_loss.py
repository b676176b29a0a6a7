"""Cross-entropy of a language model without ever holding all logits.

Only positions that are learnt from are projected to the vocabulary, a few at a time, and their
gradient is worked out in the same pass: nothing is computed for masked tokens, twice, or kept.
"""

from __future__ import annotations

from typing import Any

import torch

CHUNK = 256
"""Positions at a time: 256 x 50 000 float32 logits are 50 MB."""


class _HeadLoss(torch.autograd.Function):
    """Sum of -log p(label) over positions, with d/d hidden and, when it learns, d/d weight."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Any, weight: Any, bias: Any, labels: Any, divisor: Any, needs_grad: bool
    ) -> Any:
        learns = needs_grad and weight.requires_grad
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if learns else None
        grad_bias = (
            torch.zeros_like(bias, dtype=torch.float32)
            if bias is not None and needs_grad and bias.requires_grad
            else None
        )
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, hidden.shape[0], CHUNK):
            part = hidden[start : start + CHUNK]
            wanted = labels[start : start + CHUNK, None]
            logits = torch.nn.functional.linear(part, weight, bias).float()
            total = torch.logsumexp(logits, -1, keepdim=True)
            loss += (total - logits.gather(1, wanted)).sum()
            if not needs_grad:
                continue
            # softmax - one-hot, in place of the logits
            logits.sub_(total).exp_()
            logits.scatter_add_(1, wanted, torch.full_like(total, -1.0))
            logits.div_(divisor)
            slope = logits.to(hidden.dtype)
            torch.mm(slope, weight, out=grad_hidden[start : start + CHUNK])
            if grad_weight is not None:
                grad_weight += slope.t() @ part
            if grad_bias is not None:
                grad_bias += logits.sum(0)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        return loss / divisor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        weight_dtype, bias_dtype = ctx.dtypes
        if grad_weight is not None:
            grad_weight = (grad_weight * grad).to(weight_dtype)
        if grad_bias is not None:
            grad_bias = (grad_bias * grad).to(bias_dtype)
        return grad_hidden * grad.to(grad_hidden.dtype), grad_weight, grad_bias, None, None, None


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
    needs_grad = torch.is_grad_enabled()
    return _HeadLoss.apply(states, head.weight, head.bias, wanted[learnt], divisor, needs_grad)
