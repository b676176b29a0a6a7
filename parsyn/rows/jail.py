"""Reads a user's file in a child process: bounded, without secrets, killed when late."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from parsyn.errors import ErrorCode, FieldError, ParsynError
from parsyn.rows.requests import (
    Preview,
    PreviewRequest,
    RenderedChat,
    RenderRequest,
    Request,
    Statistics,
    StatsRequest,
    ValidateRequest,
    ValidationReport,
)

T = TypeVar("T")

MEMORY_BYTES = 1 << 30
ANSWER_BYTES = 64 << 20
_LOGGED_BYTES = 4000

_log = logging.getLogger(__name__)

# Isolated mode reads neither PYTHON* variables nor the current directory; what the parent can
# import (a checkout, site-packages, an unpacked zipapp) is named instead.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from parsyn.rows.child import main; main()"
)


def validate_file(
    request: ValidateRequest, *, timeout: float, memory_bytes: int = MEMORY_BYTES
) -> ValidationReport:
    """Reads the whole file. A bad file is a report; `ParsynError` is for what is not."""
    return _checked(ValidationReport, run_child(request, timeout, memory_bytes))


def preview_file(
    request: PreviewRequest, *, timeout: float, memory_bytes: int = MEMORY_BYTES
) -> Preview:
    return _checked(Preview, run_child(request, timeout, memory_bytes))


def measure_file(
    request: StatsRequest, *, timeout: float, memory_bytes: int = MEMORY_BYTES
) -> Statistics:
    return _checked(Statistics, run_child(request, timeout, memory_bytes))


def render_chat(
    request: RenderRequest, *, timeout: float, memory_bytes: int = MEMORY_BYTES
) -> RenderedChat:
    return _checked(RenderedChat, run_child(request, timeout, memory_bytes))


def run_child(request: Request, timeout: float, memory_bytes: int = MEMORY_BYTES) -> Any:
    """The child's result as JSON, not yet checked. `timeout` in seconds, of time and of CPU.

    Raises `ParsynError`: `validation_failed` (the mapping), `bad_data` (the file, or a child that
    died of it), `timeout`, `internal`. Blocks; call it on a thread.
    """
    limits = {"memory": memory_bytes, "cpu": int(timeout) + 1, "answer": ANSWER_BYTES}
    order = json.dumps({"limits": limits, "request": asdict(request)}).encode()
    with (
        tempfile.TemporaryFile() as asked,
        tempfile.TemporaryFile() as answered,
        tempfile.TemporaryFile() as complained,
    ):
        asked.write(order)
        asked.seek(0)
        child = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _START, json.dumps(_import_path())],
            stdin=asked,
            stdout=answered,
            stderr=complained,
            env=_environment(),
            cwd="/",
            start_new_session=True,
        )
        late = not _wait(child, timeout)
        answered.seek(0)
        complained.seek(0)
        words = complained.read(_LOGGED_BYTES).decode("utf-8", "replace")
        if words:
            _log.warning("reading a file in a child process: %s", words)
        raw = answered.read(ANSWER_BYTES + 1)
        if not late and child.returncode != 0 and _ran_out_of_memory(words):
            raise _too_much_memory(memory_bytes)
        return _result(child.returncode, raw, late, timeout, memory_bytes)


def _import_path() -> list[str]:
    home = str(Path(__file__).parents[2])
    return [home, *(entry for entry in sys.path if os.path.isabs(entry) and entry != home)]


def _environment() -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        # One small heap and no threads, so that the memory limit bounds data, not reservations.
        "MALLOC_ARENA_MAX": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _wait(child: subprocess.Popen[bytes], timeout: float) -> bool:
    """Whether the child ended by itself in time; else it is killed, with what it started."""
    try:
        _wait_without_polling(child, timeout)
        child.wait(0.05 if child.poll() is None else None)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return False
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    return True


def _wait_without_polling(child: subprocess.Popen[bytes], timeout: float) -> None:
    if not hasattr(os, "pidfd_open"):
        child.wait(timeout)
        return
    handle = os.pidfd_open(child.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(timeout * 1000)
    finally:
        os.close(handle)


def _result(code: int, raw: bytes, late: bool, timeout: float, memory_bytes: int) -> Any:
    if late or code == -signal.SIGXCPU:
        raise ParsynError(
            ErrorCode.TIMEOUT,
            f"Reading the file took longer than {timeout:,.0f} s and was stopped. "
            "Split it into smaller files.",
        )
    if code == -signal.SIGKILL:
        raise ParsynError(
            ErrorCode.UNAVAILABLE,
            "The reader of the file was killed, perhaps because this machine ran out of memory. "
            "Try again later.",
        )
    if code != 0:
        raise ParsynError(
            ErrorCode.BAD_DATA,
            f"Reading the file made the reader crash ({_death(code)}). The file is damaged or was "
            "made to do harm; write it anew, as JSONL if it can be.",
        )
    answer = _parsed(raw)
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    raise _told(error, memory_bytes)


def _ran_out_of_memory(words: str) -> bool:
    """Native code does not raise `MemoryError`: it says so (Rust, C++) and aborts."""
    return any(said in words for said in ("memory allocation of", "bad_alloc", "MemoryError"))


def _too_much_memory(memory_bytes: int) -> ParsynError:
    return ParsynError(
        ErrorCode.BAD_DATA,
        f"Reading the file takes more than {memory_bytes >> 20:,} MiB of memory. "
        "Its rows (or Parquet row groups) are too large; write it in smaller ones.",
    )


def _death(code: int) -> str:
    if code > 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _unclear()
    return answer


def _told(error: Any, memory_bytes: int) -> ParsynError:
    if not isinstance(error, dict):
        return _unclear()
    code, detail = error.get("code"), str(error.get("detail"))[:2000]
    match code:
        case "validation_failed":
            loc = tuple(str(part) for part in error.get("loc", ()))
            return ParsynError(
                ErrorCode.VALIDATION_FAILED, detail, errors=[FieldError(loc, detail)]
            )
        case "bad_data":
            return ParsynError(ErrorCode.BAD_DATA, detail)
        case "memory":
            return _too_much_memory(memory_bytes)
    return ParsynError(ErrorCode.INTERNAL, f"The file could not be read: {detail}")


def _checked(kind: type[T], result: Any) -> T:
    try:
        return TypeAdapter(kind).validate_python(result)
    except ValidationError as error:
        raise _unclear() from error


def _unclear() -> ParsynError:
    return ParsynError(
        ErrorCode.INTERNAL, "The reader of the file gave no answer that makes sense. Try again."
    )
