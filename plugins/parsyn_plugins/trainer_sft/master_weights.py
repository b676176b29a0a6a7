"""An optimizer that keeps 32-bit copies of 16-bit weights.

A bf16 weight has 8 bits of precision: updates smaller than 1/256 of it would be lost. The copies
take the updates, the model computes with their rounded values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class MasterWeights(torch.optim.Optimizer):
    """Wraps `make(groups)`; its param groups (and so the learning rate) are the inner one's."""

    def __init__(self, groups: Sequence[dict[str, Any]], make: Callable[[Any], Any]) -> None:
        self.weights = [weight for group in groups for weight in group["params"]]
        copies = [
            {**group, "params": [_copy(weight) for weight in group["params"]]} for group in groups
        ]
        self.copies = [copy for group in copies for copy in group["params"]]
        self.inner = make(copies)
        super().__init__(self.inner.param_groups, self.inner.defaults)
        self.state = self.inner.state

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        used = [pair for pair in zip(self.weights, self.copies, strict=True) if _has_grad(pair)]
        for weight, copy in used:
            copy.grad = weight.grad.float()
        self.inner.step()
        if used:
            weights, copies = zip(*used, strict=True)
            torch._foreach_copy_(list(weights), list(copies))
        for _, copy in used:
            copy.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        for weight in self.weights:
            weight.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "copies": [copy.data for copy in self.copies]}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
        for copy, saved in zip(self.copies, state["copies"], strict=True):
            copy.copy_(saved)
        # Loading replaces the inner lists and states; what schedulers hold must stay the same.
        self.param_groups = self.inner.param_groups
        self.state = self.inner.state


def _copy(weight: Any) -> Any:
    return weight.detach().float().clone().requires_grad_(True)


def _has_grad(pair: tuple[Any, Any]) -> bool:
    return pair[0].grad is not None
