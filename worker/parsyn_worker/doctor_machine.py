"""Checks of the machine: room, driver, and in a child of the runtime torch and a real step."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import psutil
import pynvml

from parsyn.errors import ParsynError
from parsyn.plugin.check import Finding
from parsyn_worker import runtime, runtime_install
from parsyn_worker.environment import child_device, child_environment
from parsyn_worker.patient import Patient

LITTLE_DISK, LITTLE_MEMORY = 10 << 30, 4 << 30
NO_DISK = 1 << 30
TRIAL_SECONDS = 300.0


def disk(patient: Patient) -> Finding:
    nearest = next(path for path in (patient.cache, *patient.cache.parents) if path.exists())
    free = psutil.disk_usage(str(nearest)).free
    text = f"{free / 2**30:.1f} GiB free for {patient.cache}"
    if free < LITTLE_DISK:
        todo = "Free space, or point CACHE_DIR at a larger disk."
        return Finding("error", text, todo) if free < NO_DISK else Finding("warn", text, todo)
    return Finding("ok", text)


def memory(patient: Patient) -> Finding:
    found = psutil.virtual_memory()
    text = f"{found.available / 2**30:.1f} of {found.total / 2**30:.1f} GiB available"
    if found.available < LITTLE_MEMORY:
        return Finding("warn", text, "Close other programs, or expect small models only.")
    return Finding("ok", text)


def driver(patient: Patient) -> Finding:
    """What NVIDIA's driver says of itself and its GPUs."""
    with _nvml() as found:
        if found is None:
            if patient.device == "cpu":
                return Finding("ok", "none, and none is needed: the device is the CPU")
            return Finding(
                "error",
                f"{patient.device} is set, and no NVIDIA driver answers",
                "Install your system's NVIDIA driver; `nvidia-smi` must list the GPU.",
            )
        count = pynvml.nvmlDeviceGetCount()
        cuda = pynvml.nvmlSystemGetCudaDriverVersion()
        names = [_gpu(index) for index in range(count)]
        text = (
            f"{_text(pynvml.nvmlSystemGetDriverVersion())}, up to CUDA {cuda // 1000}."
            f"{cuda % 1000 // 10}, {', '.join(names) or 'no GPU'}"
        )
    index = int(patient.device.partition(":")[2] or 0)
    if patient.device != "cpu" and index >= count:
        return Finding("error", f"{text}; there is no {patient.device}", "Set GPU_DEVICE to one.")
    if patient.device == "cpu" and count:
        return Finding("warn", f"{text}; the device is the CPU", "Set GPU_DEVICE=cuda:0.")
    return Finding("ok", text)


def _gpu(index: int) -> str:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return f"{_text(pynvml.nvmlDeviceGetName(handle))} ({memory.total / 2**30:.0f} GiB)"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def runtime_found(patient: Patient) -> Finding:
    try:
        found = runtime.usable(patient.cache)
    except ParsynError as error:
        return Finding("error", error.detail, None)
    return Finding("ok", runtime_install.describe(found))


# --- torch, in a child of the runtime ----------------------------------------------------------


def torch(patient: Patient) -> Finding:
    return _trial(patient, "torch")


def matmul(patient: Patient) -> Finding:
    return _trial(patient, "bf16 matmul")


def bitsandbytes(patient: Patient) -> Finding:
    return _trial(patient, "bitsandbytes")


def lora(patient: Patient) -> Finding:
    return _trial(patient, "LoRA step")


def _trial(patient: Patient, name: str) -> Finding:
    trials, last = _trials(patient)
    if name in trials:
        row = trials[name]
        return Finding(row["level"], row["found"], row["advice"])
    if name != "torch" and trials.get("torch", {}).get("level", "error") == "error":
        return Finding("warn", "not tried", "First repair torch, above.")
    return Finding("error", f"the child ended before it could say ({last})", "See `parsyn logs`.")


@lru_cache(maxsize=4)
def _trials(patient: Patient) -> tuple[dict[str, dict[str, Any]], str]:
    """What `torch_trial` found by name, and the last words of the child."""
    found = patient.runtime
    env = child_environment(patient.device, found.environment())
    command = found.command(
        "parsyn_worker.torch_trial", child_device(patient.device), folder=patient.folder,
        cache=patient.cache, gpu=patient.device != "cpu", purpose="doctor",
        passing={"CUDA_VISIBLE_DEVICES": env["CUDA_VISIBLE_DEVICES"]},
    )  # fmt: skip
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, timeout=TRIAL_SECONDS, check=False,
            cwd=os.sep,
        )  # fmt: skip
        out, last = done.stdout, _last(done.stderr) or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        out, last = error.stdout or b"", f"no answer within {TRIAL_SECONDS:.0f} s"
    except OSError as error:
        out, last = b"", str(error)
    rows = [_row(line) for line in out.splitlines()]
    return {row["trial"]: row for row in rows if row}, last


def _row(line: bytes) -> dict[str, Any] | None:
    """None for what torch and its libraries print."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and "trial" in row else None


def _last(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def plugins(patient: Patient) -> Finding:
    from parsyn.plugin.manager import Plugins

    found = Plugins()
    if found.failed:
        first = ", ".join(f"{name} ({error})" for name, error in sorted(found.failed.items()))
        return Finding("warn", f"plugins that do not load: {first}", "Reinstall or remove them.")
    return Finding("ok", f"trainers: {', '.join(sorted(found.trainers)) or 'none'}")
