"""How many rows fit at a time, and whether activations must be recomputed to save memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parsyn_plugins.trainer_sft.params import SftParams
from parsyn_plugins.trainer_sft.plan import EFFECTIVE_BATCH

CPU_TOKENS = 2048
"""Tokens at a time on a CPU: more fill no cache better, fewer leave the cores waiting."""
HEADROOM = 0.92
"""The part of a GPU's memory that a probe may use; fragmentation takes the rest."""


@dataclass(frozen=True)
class Fit:
    batch_size: int
    checkpointing: bool


def fit(model: Any, params: SftParams, lengths: Sequence[int], most: int) -> Fit:
    """`lengths` are the training rows' in tokens, `most` the agent's own limit of rows."""
    ordered = sorted(lengths)
    longest, typical = ordered[-1], ordered[len(ordered) * 3 // 4]
    if model.device.type == "cpu":
        return fit_cpu(model, params, longest, typical)
    return fit_gpu(model, params, longest, most)


def fit_cpu(model: Any, params: SftParams, longest: int, typical: int) -> Fit:
    """By a rule: about `CPU_TOKENS` tokens at a time; recompute when an estimate says so."""
    import psutil

    size = max(1, min(EFFECTIVE_BATCH, CPU_TOKENS // max(1, typical)))
    if params.batch_size != "auto":
        size = params.batch_size
    if params.gradient_checkpointing != "auto":
        return Fit(size, params.gradient_checkpointing)
    free = psutil.virtual_memory().available * 0.7 - optimizer_bytes(model)
    if params.batch_size == "auto":
        while size > 1 and activation_bytes(model, size * longest) > free:
            size //= 2
    return Fit(size, activation_bytes(model, size * longest) > free)


def activation_bytes(model: Any, tokens: int) -> int:
    """Bytes that a forward pass keeps for the way back: about 34 values of 16 bit for each of
    `hidden_size` in each layer (Korthikanti et al. 2022, eq. 2, without its attention term)."""
    config = model.config.get_text_config()
    width = next(model.parameters()).element_size() / 2
    return int(34 * config.hidden_size * config.num_hidden_layers * tokens * width)


def optimizer_bytes(model: Any) -> int:
    """Gradients, two moments and, for 16-bit weights, the 32-bit copies."""
    return sum(
        p.numel() * (p.element_size() + 8 + (4 if p.element_size() < 4 else 0))
        for p in model.parameters()
        if p.requires_grad
    )


def fit_gpu(model: Any, params: SftParams, longest: int, most: int) -> Fit:
    """By trying: the largest batch of the longest row that a step survives."""
    asked = params.gradient_checkpointing
    sizes = [params.batch_size] if params.batch_size != "auto" else _sizes(most)
    for checkpointing in (False, True) if asked == "auto" else (asked,):
        _set_checkpointing(model, checkpointing)
        for size in sizes:
            if _survives(model, size, longest):
                return Fit(size, checkpointing)
    # Let the run itself fail, with its own numbers.
    return Fit(sizes[-1], asked is not False)


def _sizes(most: int) -> list[int]:
    size, sizes = EFFECTIVE_BATCH, []
    while size >= 1:
        if size <= max(1, most):
            sizes.append(size)
        size //= 2
    return sizes


def _set_checkpointing(model: Any, on: bool) -> None:
    if on:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    else:
        model.gradient_checkpointing_disable()


def _survives(model: Any, rows: int, longest: int) -> bool:
    import torch

    from parsyn_plugins.trainer_sft.loop import language_loss

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    total = torch.cuda.get_device_properties(model.device).total_memory
    model.train()
    try:
        ids = torch.zeros((rows, longest), dtype=torch.long, device=model.device)
        language_loss(model, {"input_ids": ids, "labels": ids}, 1.0).backward()
        peak = torch.cuda.max_memory_allocated() + optimizer_bytes(model)
        return bool(peak < HEADROOM * total)
    except torch.OutOfMemoryError:
        return False
    finally:
        model.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
