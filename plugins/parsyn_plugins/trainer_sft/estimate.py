"""What a run comes to, from the model's config and the data's statistics alone: no torch, no file.

Where a figure would be a guess it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parsyn.plugin.trainer import DataFacts, ModelFacts, RunEstimate
from parsyn_plugins.trainer_sft.params import SftParams
from parsyn_plugins.trainer_sft.plan import (
    EFFECTIVE_BATCH,
    Batching,
    batching,
    max_length,
    schedule,
    validation_rows,
)

GATED_DECODERS = frozenset(
    {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "granite", "smollm3"}
)
"""Model types whose every layer has q, k, v and o, and a gated MLP of gate, up and down."""
WEIGHT_BYTES = {None: 2.0, "8bit": 1.0, "4bit": 0.5}
TRAINED_BYTES = 16
"""Of each trained number: the 16-bit weight and its gradient, a 32-bit copy, two moments."""
ACTIVATION_BYTES = 34
"""Of each of `hidden_size` in each layer for each token, in 16 bit (Korthikanti et al. 2022, eq. 2,
without its attention term); recomputing keeps only the 2 bytes that enter each layer."""


def estimate(params: SftParams, model: ModelFacts | None, data: DataFacts) -> RunEstimate:
    """Steps are those without packing, which makes fewer."""
    held = validation_rows(params, data.rows, data.has_validation)
    rows = data.rows - held
    batches = batching(params, fits=EFFECTIVE_BATCH, most=EFFECTIVE_BATCH)
    longest = max_length(params, model.context_length if model else None)
    steps = schedule(params, rows, batches, validated=held > 0 or data.has_validation).total_steps
    trained = trained_parameters(params, model) if model else None
    return RunEstimate(
        training_rows=rows,
        validation_rows=held,
        steps=steps,
        tokens=_tokens(params, data, rows, steps, batches, longest),
        effective_batch=batches.effective,
        max_length=longest,
        trained_parameters=trained,
        memory_bytes=_memory(params, model, trained, min(longest, data.longest or longest)),
    )


def _tokens(
    params: SftParams, data: DataFacts, rows: int, steps: int, batches: Batching, longest: int
) -> int | None:
    if data.tokens is None or not data.rows:
        return None
    mean = min(data.tokens / data.rows, longest)
    seen = rows * params.epochs
    return round(mean * (min(seen, steps * batches.effective) if params.max_steps else seen))


def trained_parameters(params: SftParams, model: ModelFacts) -> int | None:
    """Numbers that the optimizer changes; None where the adapter's layers are not known."""
    if params.method == "full":
        return model.parameters
    if model.is_adapter:
        return None  # It is trained further, with a rank of its own.
    layers = _linear_layers(model.config)
    depth = model.config.get("num_hidden_layers")
    if layers is None or not isinstance(depth, int):
        return None
    wanted = layers if params.target_modules == "all-linear" else params.target_modules
    if any(name not in layers for name in wanted):
        return None
    # A (rank x in) and B (out x rank); DoRA adds a magnitude for each output.
    per_layer = sum(
        params.lora_r * (layers[name][0] + layers[name][1]) + (layers[name][1] * params.dora)
        for name in wanted
    )
    return int(depth * per_layer)


def _linear_layers(config: Mapping[str, Any]) -> dict[str, tuple[int, int]] | None:
    """(inputs, outputs) of each linear layer of one block."""
    hidden, inner = config.get("hidden_size"), config.get("intermediate_size")
    heads = config.get("num_attention_heads")
    known = config.get("model_type") in GATED_DECODERS
    if not known or not all(isinstance(one, int) and one > 0 for one in (hidden, inner, heads)):
        return None
    assert isinstance(hidden, int)
    assert isinstance(inner, int)
    assert isinstance(heads, int)
    size = config.get("head_dim") or hidden // heads
    pairs = config.get("num_key_value_heads") or heads
    return {
        "q_proj": (hidden, heads * size),
        "k_proj": (hidden, pairs * size),
        "v_proj": (hidden, pairs * size),
        "o_proj": (heads * size, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }


def _memory(
    params: SftParams, model: ModelFacts | None, trained: int | None, longest: int
) -> int | None:
    """The least, on a GPU: one row at a time unless more are asked for, activations recomputed
    unless that is refused."""
    if model is None or model.parameters is None or trained is None:
        return None
    hidden, depth = model.config.get("hidden_size"), model.config.get("num_hidden_layers")
    if not isinstance(hidden, int) or not isinstance(depth, int):
        return None
    rows = 1 if params.batch_size == "auto" else params.batch_size
    kept = ACTIVATION_BYTES * depth
    if params.gradient_checkpointing is not False:
        kept = 2 * depth + ACTIVATION_BYTES
    weights = 0.0
    if params.method != "full":
        weights = model.parameters * WEIGHT_BYTES[params.base_quantization]
    return round(weights + trained * TRAINED_BYTES + kept * hidden * rows * longest)
