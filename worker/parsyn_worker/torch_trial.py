"""A child that tries what a task will need of one device: prints a JSON line after each trial.

Each line is {"trial", "level", "found", "advice"}. What comes after a crash is missing; `doctor`
tells that from what the child said last.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

SIZE = 1024
Verdict = tuple[str, str, str | None]
DRIVER = "Check the driver with `nvidia-smi`, or set GPU_DEVICE=cpu."


def sees_device(device: str) -> Verdict:
    import torch

    build = f"torch {torch.__version__}"
    if device == "cpu":
        return "ok", f"{build}, {torch.get_num_threads()} threads", None
    if torch.version.cuda is None:
        todo = "Run `parsyn runtime install` on this machine, which has a GPU."
        return "error", f"{build} has no CUDA", todo
    if not torch.cuda.is_available():
        return "error", f"{build} for CUDA {torch.version.cuda} sees no GPU", DRIVER
    facts = torch.cuda.get_device_properties(0)
    memory = facts.total_memory / 2**30
    return "ok", f"{build}, CUDA {torch.version.cuda}, {facts.name}, {memory:.0f} GiB", None


def multiplies(device: str) -> Verdict:
    """A real bf16 product, compared with the same in fp32."""
    import torch

    from parsyn.plugin.loading import cpu_has_bf16

    generator = torch.Generator().manual_seed(1)
    left, right = (torch.randn(SIZE, SIZE, generator=generator) for _ in range(2))
    a, b = (part.to(device, torch.bfloat16) for part in (left, right))
    product = a @ b
    began = time.perf_counter()
    rounds = 8
    for _ in range(rounds):
        product = a @ b
    mean = float(product.float().abs().mean())
    seconds = (time.perf_counter() - began) / rounds
    error = float((product.float().cpu() - left @ right).abs().max()) / math.sqrt(SIZE)
    if not math.isfinite(mean) or error > 0.1:
        return "error", f"bf16 products are wrong by {error:.2g}", "Replace the device."
    gflops = 2 * SIZE**3 / seconds / 1e9
    text = f"right to {error:.1g}, {gflops:,.0f} GFLOP/s at {SIZE}³"
    fast = cpu_has_bf16() if device == "cpu" else torch.cuda.is_bf16_supported(False)
    if not fast:
        return "warn", f"{text}, without hardware for it", "Training uses fp32 (or fp16) here."
    return "ok", text, None


def quantises(device: str) -> Verdict:
    """4-bit weights there and back; only a GPU needs them."""
    if device == "cpu":
        return "ok", "not needed on a CPU", None
    if find_spec("bitsandbytes") is None:
        todo = "QLoRA and 8-bit optimizers need it: parsyn runtime install."
        return "warn", "not installed", todo
    import torch

    functional = importlib.import_module("bitsandbytes.functional")
    weights = torch.randn(256, 256, device=device, dtype=torch.bfloat16)
    packed, state = functional.quantize_4bit(weights, quant_type="nf4")
    back = functional.dequantize_4bit(packed, state)
    error = float((back - weights).abs().mean() / weights.abs().mean())
    if error > 0.2:
        return "error", f"4-bit weights come back {error:.0%} off", "Reinstall bitsandbytes."
    return "ok", f"{version('bitsandbytes')}, 4-bit weights come back {error:.0%} off", None


def trains(device: str) -> Verdict:
    """One step of LoRA on a tiny model of random weights, made here."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    began = time.perf_counter()
    model: Any = get_peft_model(
        LlamaForCausalLM(config).to(device, torch.bfloat16),
        LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    tokens = torch.randint(0, 128, (2, 32), device=device)
    losses = []
    for _ in range(2):
        loss = model(input_ids=tokens, labels=tokens).loss
        losses.append(float(loss))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    losses.append(float(model(input_ids=tokens, labels=tokens).loss))
    seconds = time.perf_counter() - began
    text = f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {seconds:.1f} s"
    if not all(map(math.isfinite, losses)) or losses[-1] >= losses[0]:
        return "error", text, "torch, transformers and peft do not fit: parsyn runtime install."
    return "ok", text, None


TRIALS: dict[str, Callable[[str], Verdict]] = {
    "torch": sees_device,
    "bf16 matmul": multiplies,
    "bitsandbytes": quantises,
    "LoRA step": trains,
}


def main(device: str) -> None:
    for name, trial in TRIALS.items():
        try:
            level, found, advice = trial(device)
        except Exception as error:
            what = str(error).strip().splitlines() or [""]
            found = f"{type(error).__name__}: {what[0]}"[:300]
            level, advice = "error", "See the line; `parsyn runtime install` repairs packages."
        line = {"trial": name, "level": level, "found": found, "advice": advice}
        print(json.dumps(line), flush=True)  # noqa: T201
        if name == "torch" and level == "error":
            return


if __name__ == "__main__":
    main(sys.argv[1])
