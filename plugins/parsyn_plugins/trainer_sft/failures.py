"""What libraries throw, as one of the closed reasons and what to change."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from parsyn.plugin.loading import is_out_of_memory
from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason


@dataclass
class Size:
    """What the run holds at a time; filled in as it becomes known, for advice in numbers."""

    batch_size: int = 1
    longest: int = 0
    checkpointing: bool = False
    device: str = "cpu"


@contextmanager
def plain_failures(size: Size, folder: Path) -> Iterator[None]:
    """Raise TaskFailure `out_of_memory` or `disk_full` for what says so; the rest passes."""
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise _out_of_memory(size, error) from error
        if _is_disk_full(error):
            raise TaskFailure(
                FailureReason.DISK_FULL,
                f"The agent's disk is full: nothing more can be written below {folder}.",
                line=str(error)[:500],
                advice="Free space on the agent, or set its cache folder to a larger disk.",
            ) from error
        raise


def _out_of_memory(size: Size, error: Exception) -> TaskFailure:
    advice = []
    if size.batch_size > 1:
        advice.append(f"batch_size from {size.batch_size} to {size.batch_size // 2}")
    if size.longest > 256:
        advice.append(f"max_seq_length from {size.longest} to {size.longest // 2}")
    if not size.checkpointing:
        advice.append("gradient_checkpointing to true")
    if not advice:
        advice.append("method to qlora, or choose a smaller model or a larger agent")
    return TaskFailure(
        FailureReason.OUT_OF_MEMORY,
        f"The memory of {_memory(size.device)} was not enough for {size.batch_size} rows of up to "
        f"{size.longest} tokens at a time.",
        line=str(error).splitlines()[0][:500] if str(error) else None,
        advice=f"Set {', or '.join(advice)}.",
    )


def _memory(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        total = torch.cuda.get_device_properties(device).total_memory
    else:
        import psutil

        total = psutil.virtual_memory().total
    return f"{device} ({total / 2**30:.0f} GiB)"


def _is_disk_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # torch and safetensors wrap what the disk said.
    text = str(error)
    wrapped = "No space left on device" in text or "PytorchStreamWriter failed writing" in text
    return wrapped or (error.__cause__ is not None and _is_disk_full(error.__cause__))
