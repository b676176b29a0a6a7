"""What this machine is and how busy it is. torch is asked in a child, never here."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pynvml

from parsyn.wire.worker import Hardware, SystemMetrics
from parsyn_worker.environment import child_environment
from parsyn_worker.vram import Foreign, foreign_use

log = logging.getLogger(__name__)

FRESH_SECONDS = 24 * 3600
TORCH_SECONDS = 120


@dataclass(frozen=True)
class TorchFacts:
    """What torch says in a child that sees the agent's device only; None: no torch there."""

    torch: str | None = None
    cuda: str | None = None
    device_ok: bool = False
    bf16: bool = False
    bitsandbytes: bool = False
    error: str | None = None


def default_device() -> str:
    """`cuda:0` where a driver shows a GPU, else `cpu`."""
    with _driver() as driver:
        return "cuda:0" if driver and driver.nvmlDeviceGetCount() > 0 else "cpu"


def hardware(device: str, facts: TorchFacts) -> Hardware:
    """The machine as the hub lists it; memory in bytes."""
    gpu: dict[str, Any] = {}
    with _gpu(device) as handle:
        if handle is not None:
            gpu = {
                "gpu": _text(pynvml.nvmlDeviceGetName(handle)),
                "vram_total": int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
                "cuda": facts.cuda,
            }
    return Hardware(
        cpu=_cpu_name(),
        cores=psutil.cpu_count() or 0,
        ram=psutil.virtual_memory().total,
        torch=facts.torch,
        bf16=facts.bf16,
        bitsandbytes=facts.bitsandbytes,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        **gpu,
    )


def system_metrics(device: str, disk: Path) -> SystemMetrics:
    """Utilisation now. The CPU's is the mean since the former call."""
    gpu: dict[str, Any] = {}
    with _gpu(device) as handle:
        if handle is not None:
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            gpu = {"vram_used": int(memory.used), "vram_total": int(memory.total)}
            foreign = _foreign(handle)
            gpu |= {"vram_foreign": foreign.bytes, "foreign_processes": foreign.processes}
            with contextlib.suppress(pynvml.NVMLError):
                gpu["gpu_utilization"] = float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    memory_now = psutil.virtual_memory()
    return SystemMetrics(
        at=time.time(),
        cpu=psutil.cpu_percent(),
        ram_used=memory_now.total - memory_now.available,
        ram_total=memory_now.total,
        disk_free=_free(disk),
        **gpu,
    )


def room(device: str) -> tuple[int, int] | None:
    """(bytes that other programs leave, bytes in all) of a GPU; None where that cannot be told."""
    with _gpu(device) as handle:
        if handle is None:
            return None
        total = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
        held = _foreign(handle).bytes
    return None if held is None else (total - held, total)


def _foreign(handle: Any) -> Foreign:
    """By the driver's list of processes; those of the agent and its children are its own."""
    try:
        lists = (
            pynvml.nvmlDeviceGetComputeRunningProcesses(handle),
            pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle),
        )
        # The second version leaves out what the driver keeps for itself.
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except Exception:
        # A driver older than its bindings fails in its own ways; not to know is no failure.
        return Foreign()
    held = {process.pid: process.usedGpuMemory for listed in lists for process in listed}
    children = [child.pid for child in psutil.Process().children(recursive=True)]
    own = {os.getpid(), *children}
    return foreign_use(held, int(info.used), own, children=bool(children))


def torch_facts(device: str, cache: Path) -> TorchFacts:
    """Ask torch in a child; the answer is kept for a day while its version stays."""
    file = cache / "state" / f"torch-{device.replace(':', '-')}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_text())
        facts = TorchFacts(**kept["facts"])
        if kept["version"] == _torch_version() and time.time() - kept["at"] < FRESH_SECONDS:
            return facts
    facts = ask_torch(device)
    if facts.error is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = {"version": _torch_version(), "at": time.time(), "facts": facts.__dict__}
        file.write_text(json.dumps(kept))
    return facts


def ask_torch(device: str) -> TorchFacts:
    """Run the child that imports torch and multiplies two matrices; takes some seconds."""
    if _torch_version() is None:
        return TorchFacts(error="torch is not installed; install parsyn[worker]")
    command = [sys.executable, "-P", "-m", "parsyn_worker.torch_probe", device]
    try:
        done = subprocess.run(
            command,
            env=child_environment(device),
            capture_output=True,
            timeout=TORCH_SECONDS,
            check=False,
        )
        return TorchFacts(**json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return TorchFacts(error=f"torch did not answer within {TORCH_SECONDS} s")
    except (ValueError, IndexError, TypeError):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return TorchFacts(error=last[0] if last else f"torch ended with {done.returncode}")


def _torch_version() -> str | None:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


@contextlib.contextmanager
def _driver() -> Iterator[Any]:
    """pynvml, or None where there is no NVIDIA driver."""
    try:
        _start_driver()
    except pynvml.NVMLError:
        yield None
        return
    yield pynvml


@lru_cache(maxsize=1)
def _start_driver() -> None:
    pynvml.nvmlInit()


@contextlib.contextmanager
def _gpu(device: str) -> Iterator[Any]:
    """The driver's handle of a device `cuda:N`, as CUDA_VISIBLE_DEVICES counts; else None."""
    if device == "cpu":
        yield None
        return
    name = child_environment(device)["CUDA_VISIBLE_DEVICES"]
    with _driver() as driver:
        handle = None
        if driver:
            with contextlib.suppress(pynvml.NVMLError):
                if name.isdecimal():
                    handle = driver.nvmlDeviceGetHandleByIndex(int(name))
                else:
                    handle = driver.nvmlDeviceGetHandleByUUID(name)
        yield handle


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _free(path: Path) -> int | None:
    try:
        return psutil.disk_usage(str(path)).free
    except OSError:
        return None


@lru_cache(maxsize=1)
def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or os.uname().machine
