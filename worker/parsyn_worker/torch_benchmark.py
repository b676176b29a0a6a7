"""A child that measures one device with torch: a JSON line for each figure, as soon as it is known.

The device's name is the first line of stdin.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

SECONDS = 0.3
"""How long each speed is measured, once it has run warm."""
GPU_SIDE, CPU_SIDE = 8192, 1024
GPU_COPY, CPU_COPY = 1 << 30, 64 << 20
WIDTH, HEADS, LENGTH = 1024, 16, 512
"""The block whose largest batch is looked for: a transformer layer with an inner width of 4 x
`WIDTH`, on rows of `LENGTH` tokens."""
MOST_ROWS = 2048
"""A million tokens at once; a device that holds more is not told apart by this figure."""
SEARCH_SECONDS = 30.0
POLITE_SHARE = 0.5
"""The part of the free memory that a CPU's batch may take."""


def main() -> None:
    device = sys.stdin.readline().strip()
    target = "cuda:0" if device.startswith("cuda") else "cpu"
    precision, tflops = matmul(target)
    say(precision=precision, tflops=tflops)
    say(bandwidth_gbs=bandwidth(target))
    say(max_batch=largest_batch(target, precision))


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)  # noqa: T201


def matmul(target: str) -> tuple[str, float]:
    """(precision, TFLOPS) of square matrices: FP16 on a GPU, else what the CPU is fastest in."""
    if target != "cpu":
        return "float16", _tflops("float16", target, GPU_SIDE)
    from parsyn.plugin.loading import cpu_has_bf16

    names = ["float32", "bfloat16"] if cpu_has_bf16() else ["float32"]
    measured = [(_tflops(name, target, CPU_SIDE), name) for name in names]
    tflops, name = max(measured)
    return name, tflops


def _tflops(precision: str, target: str, side: int) -> float:
    import torch

    dtype = getattr(torch, precision)
    a, b = (torch.randn(side, side, device=target).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    seconds = _mean_seconds(lambda: torch.matmul(a, b, out=out), target)
    return float(2 * side**3 / seconds / 1e12)


def bandwidth(target: str) -> float:
    """GB/s of a copy of a large tensor: bytes read plus bytes written."""
    import torch

    size = CPU_COPY
    if target != "cpu":
        size = min(GPU_COPY, torch.cuda.mem_get_info()[0] // 8)
    source = torch.zeros(size, dtype=torch.uint8, device=target)
    copy = torch.empty_like(source)
    return float(2 * size / _mean_seconds(lambda: copy.copy_(source), target) / 1e9)


def _mean_seconds(run: Callable[[], Any], target: str) -> float:
    """Of one run, over `SECONDS` of them; the GPU is waited for at both ends of a batch."""
    import torch

    def batch(count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            run()
        if target != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    batch(2)
    count, spent, runs = 1, 0.0, 0
    while spent < SECONDS:
        spent += batch(count)
        runs += count
        count = max(1, min(64, int(runs / spent * SECONDS / 5)))
    return spent / runs


# --- the largest batch -----------------------------------------------------------------------


def largest_batch(target: str, precision: str) -> int:
    """Rows that a forward and backward pass of one block has room for.

    On a GPU by trying. A CPU is not driven into its swap: what one row keeps is measured, and the
    batch is as large as half of the free memory holds.
    """
    import torch

    dtype = getattr(torch, precision)
    block = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, device=target, dtype=dtype
    )
    fits = _holds(block, dtype) if target == "cpu" else _survives(block, target, dtype)
    return largest(fits, MOST_ROWS, time.monotonic() + SEARCH_SECONDS)


def largest(fits: Callable[[int], bool], most: int, deadline: float) -> int:
    """The largest number up to `most` that fits, to a sixteenth; 0 where not even one does.

    What is known at the deadline counts.
    """
    low, high = 0, 1
    while low < most and time.monotonic() < deadline and fits(high):
        low, high = high, min(2 * high, most)
    while high - low > max(1, low // 16) and time.monotonic() < deadline:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _survives(block: Any, target: str, dtype: Any) -> Callable[[int], bool]:
    import torch

    def fits(rows: int) -> bool:
        try:
            batch = torch.randn(rows, LENGTH, WIDTH, device=target).to(dtype)
            block(batch).float().mean().backward()
            torch.cuda.synchronize()
        except RuntimeError:
            # Out of memory, or more than a kernel takes at once.
            return False
        finally:
            block.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
        return True

    return fits


def _holds(block: Any, dtype: Any) -> Callable[[int], bool]:
    import psutil
    import torch

    kept = 0

    def weigh(tensor: Any) -> Any:
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(weigh, lambda tensor: tensor):
        block(torch.randn(1, LENGTH, WIDTH).to(dtype))
    weights = sum(p.numel() * p.element_size() for p in block.parameters())
    # The weights are kept once for each of their uses, and need a gradient each.
    row, fixed = max(1, kept - weights), 2 * weights
    free = psutil.virtual_memory().available * POLITE_SHARE
    return lambda rows: fixed + rows * row <= free


if __name__ == "__main__":
    main()
