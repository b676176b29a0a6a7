"""A GPU's memory between this agent, what else runs on it, and what its owner allows."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

CAP_VARIABLE = "PARSYN_VRAM_CAP"
"""Bytes that one child may take of its device; set for every child that works on it."""
SMALLEST_FRACTION = 0.01


@dataclass(frozen=True)
class Foreign:
    """What other programs hold; None is unknown."""

    bytes: int | None = None
    processes: int | None = None


class VramCap:
    """The owner's limit as the hub last said it; children that start afterwards keep to it."""

    def __init__(self) -> None:
        self.bytes: int | None = None

    def environment(self) -> dict[str, str]:
        """What a child is given so that it keeps to the cap."""
        return {} if self.bytes is None else {CAP_VARIABLE: str(self.bytes)}


def foreign_use(
    held: Mapping[int, int | None], used: int, own: Collection[int], *, children: bool
) -> Foreign:
    """What is not this agent's.

    `held` are the driver's figures by process, `used` the device's whole; `own` are the agent's
    processes, of which only `children` ever touch the GPU. Without any, all of it is foreign. In a
    container the driver may name processes by other numbers than one's own: then nothing can be
    told while a child works.
    """
    others = {pid: size for pid, size in held.items() if pid not in own}
    if not children:
        return Foreign(used, len(others))
    if len(others) == len(held) and held:
        return Foreign()
    sizes = [size for size in others.values() if size is not None]
    return Foreign(sum(sizes) if len(sizes) == len(others) else None, len(others))


def memory_fraction(cap: int, total: int) -> float:
    """The part of a device of `total` bytes that a cap leaves to one process, at most all."""
    return min(1.0, max(SMALLEST_FRACTION, cap / total))


def keep_to_cap(device: str, environ: Mapping[str, str] | None = None) -> None:
    """In a child: let torch take no more of the device than the environment says.

    What goes beyond it fails as if the device were that small.
    """
    cap = (os.environ if environ is None else environ).get(CAP_VARIABLE, "")
    if not cap.isdecimal() or not device.startswith("cuda"):
        return
    import torch

    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(memory_fraction(int(cap), total), device)
