"""How well a causal model predicts given tokens. Torch is imported when a function runs."""

from __future__ import annotations

from typing import Any

CHUNK = 256
"""Positions projected to the vocabulary at a time."""
SCALING = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "lm_head_multiplier",
    "output_multiplier",
)


def base_of(model: Any) -> Any:
    """The causal model itself, without PEFT's wrapper; its adapted layers stay."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def has_plain_head(model: Any) -> bool:
    """Whether logits are a linear layer of the last states and nothing else."""
    import torch

    base = base_of(model)
    config = base.config.get_text_config()
    changed = any(getattr(config, name, None) for name in SCALING)
    routed = getattr(config, "output_router_logits", False)
    return type(base.get_output_embeddings()) is torch.nn.Linear and not changed and not routed


def last_states(model: Any, input_ids: Any, **given: Any) -> Any:
    """What the head is applied to: (rows, length, size)."""
    return (
        base_of(model).base_model(input_ids=input_ids, use_cache=False, **given).last_hidden_state
    )


def row_losses(model: Any, batch: dict[str, Any]) -> list[float]:
    """For each row the sum, in nats, of -log p over its labels that are not -100.

    `batch` holds right-padded `input_ids` and `labels` (rows, length) on the model's device;
    position t predicts label t+1.
    """
    import torch

    wanted = batch["labels"][:, 1:]
    learnt = wanted != -100
    with torch.no_grad():
        if has_plain_head(model):
            head = base_of(model).get_output_embeddings()
            states = last_states(model, batch["input_ids"])[:, :-1][learnt]
        else:
            head = None
            states = model(input_ids=batch["input_ids"], use_cache=False).logits[:, :-1][learnt]
        sums = torch.zeros(len(wanted), dtype=torch.float64, device=wanted.device)
        rows = learnt.nonzero()[:, 0]
        labels = wanted[learnt]
        for at in range(0, len(labels), CHUNK):
            part = slice(at, at + CHUNK)
            logits = states[part] if head is None else head(states[part].to(head.weight.dtype))
            losses = torch.nn.functional.cross_entropy(
                logits.float(), labels[part], reduction="none"
            )
            sums.index_add_(0, rows[part], losses.double())
    return [float(value) for value in sums.tolist()]
