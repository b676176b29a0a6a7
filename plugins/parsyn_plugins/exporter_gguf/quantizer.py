"""llama.cpp itself, as a library, and its quantiser."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason

_silent: list[Any] = []


def library() -> Any:
    """The module `llama_cpp`, told to be quiet. Raises TaskFailure where it is not installed."""
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            "This agent cannot write GGUF: llama-cpp-python is not installed on it.",
            line=str(error)[:500],
            advice="Install the `gguf` extra on the agent.",
        ) from error
    if not _silent:
        ignore = llama_cpp.llama_log_callback(lambda level, text, user_data: None)
        # C keeps the address only: the object must live as long as the process.
        _silent.append(ignore)
        llama_cpp.llama_log_set(ignore, ctypes.c_void_p(0))
    return llama_cpp


def quantize(source: Path, target: Path, quantization: str) -> None:
    """Write `source` (16 bit) to `target` in the named quantization."""
    llama_cpp = library()
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{quantization}")
    status = llama_cpp.llama_model_quantize(
        str(source).encode(), str(target).encode(), ctypes.byref(options)
    )
    if status != 0 or not target.is_file():
        raise TaskFailure(
            FailureReason.INTERNAL,
            f"llama.cpp could not quantise to {quantization} (status {status}).",
            advice="Export as F16 or Q8_0, which fit every model.",
        )
