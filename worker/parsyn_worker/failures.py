"""Why a task ended badly: from an exception or an exit status to one of the closed reasons."""

from __future__ import annotations

import errno
import signal
from collections.abc import Sequence

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason
from parsyn.wire.tasks import Failure

MEMORY_ADVICE = (
    "Lower batch_size or max_seq_length, switch gradient_checkpointing on, or use a smaller model."
)
DISK_ADVICE = "Free space on the agent's disk, or point CACHE_DIR at a larger one."

_OF_CODE = {
    ErrorCode.VALIDATION_FAILED: FailureReason.USER_ERROR,
    ErrorCode.UNSUPPORTED: FailureReason.USER_ERROR,
    ErrorCode.BAD_DATA: FailureReason.BAD_DATA,
    ErrorCode.MODEL_UNAVAILABLE: FailureReason.MODEL_UNAVAILABLE,
    ErrorCode.TIMEOUT: FailureReason.TIMEOUT,
}
_OUT_OF_MEMORY = (
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
)
_DISK_FULL = ("no space left on device", "disk quota exceeded")


def classify(error: BaseException) -> Failure:
    """The failure that an exception of a task's code stands for."""
    if isinstance(error, TaskFailure):
        return error.failure
    line = f"{type(error).__name__}: {error}".splitlines()[0][:500]
    if isinstance(error, ParsynError):
        reason = _OF_CODE.get(error.code, FailureReason.INTERNAL)
        return Failure(reason=reason, message=error.detail)
    if isinstance(error, MemoryError) or _says(error, _OUT_OF_MEMORY):
        return out_of_memory("The task ran out of memory.", line)
    if (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or _says(
        error, _DISK_FULL
    ):
        return disk_full(line)
    message = "The task stopped at an error that nobody foresaw; its log has the details."
    return Failure(reason=FailureReason.INTERNAL, message=message, line=line)


def died(status: int, tail: Sequence[str]) -> Failure:
    """The failure of a child that left without an answer; `status` as of `subprocess`."""
    line = tail[-1] if tail else None
    if status == -signal.SIGKILL:
        return out_of_memory(
            "The system killed the task's process, most likely because memory ran out.", line
        )
    if any(word in text.lower() for text in tail for word in _OUT_OF_MEMORY):
        return out_of_memory("The task ran out of memory.", line)
    how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return Failure(
        reason=FailureReason.INTERNAL,
        message=f"The task's process ended {how} and left no answer.",
        line=line,
    )


def out_of_memory(message: str, line: str | None) -> Failure:
    return Failure(
        reason=FailureReason.OUT_OF_MEMORY, message=message, line=line, advice=MEMORY_ADVICE
    )


def disk_full(line: str | None) -> Failure:
    return Failure(
        reason=FailureReason.DISK_FULL,
        message="The agent's disk is full.",
        line=line,
        advice=DISK_ADVICE,
    )


def _says(error: BaseException, words: Sequence[str]) -> bool:
    text = str(error).lower()
    return any(word in text for word in words)
