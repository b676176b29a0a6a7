"""The GPU's memory: whose it is, what the owner allows, what a task must have."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from parsyn.wire.worker import Accepted, Drain, Limits, Refused
from parsyn_worker import probe, vram
from parsyn_worker.vram import CAP_VARIABLE, Foreign, foreign_use, keep_to_cap, memory_fraction
from tests.worker.conftest import Started, eventually, offer
from tests.worker.fake_hub import FakeHub

GIB = 1 << 30


def test_with_nothing_of_its_own_all_is_foreign() -> None:
    assert foreign_use({}, 0, {1}, children=False) == Foreign(0, 0)
    assert foreign_use({77: 5 * GIB}, 6 * GIB, {1}, children=False) == Foreign(6 * GIB, 1)
    # A container is told of no process although the memory is taken.
    assert foreign_use({}, 9 * GIB, {1}, children=False) == Foreign(9 * GIB, 0)


def test_its_own_children_are_not_foreign() -> None:
    held = {2: 8 * GIB, 77: 5 * GIB, 78: 1 * GIB}
    assert foreign_use(held, 14 * GIB, {1, 2}, children=True) == Foreign(6 * GIB, 2)
    assert foreign_use({2: 8 * GIB}, 8 * GIB, {1, 2}, children=True) == Foreign(0, 0)
    assert foreign_use({}, 0, {1, 2}, children=True) == Foreign(0, 0)


def test_what_cannot_be_told_is_unknown() -> None:
    other_numbers = {4001: 8 * GIB}
    assert foreign_use(other_numbers, 8 * GIB, {1, 2}, children=True) == Foreign(None, None)
    unsized = {2: 8 * GIB, 77: None}
    assert foreign_use(unsized, 9 * GIB, {1, 2}, children=True) == Foreign(None, 1)


@pytest.mark.parametrize(
    ("cap", "total", "fraction"),
    [(12 * GIB, 24 * GIB, 0.5), (24 * GIB, 24 * GIB, 1.0), (80 * GIB, 24 * GIB, 1.0),
     (1, 24 * GIB, vram.SMALLEST_FRACTION)],
)  # fmt: skip
def test_the_fraction_of_a_cap(cap: int, total: int, fraction: float) -> None:
    assert memory_fraction(cap, total) == pytest.approx(fraction)


def test_a_child_tells_torch_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[float, str]] = []
    cuda = SimpleNamespace(
        get_device_properties=lambda device: SimpleNamespace(total_memory=24 * GIB),
        set_per_process_memory_fraction=lambda part, device: calls.append((part, device)),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    keep_to_cap("cuda:0", {CAP_VARIABLE: str(6 * GIB)})
    assert calls == [(0.25, "cuda:0")]
    keep_to_cap("cpu", {CAP_VARIABLE: "5"})
    for environ in ({}, {CAP_VARIABLE: "x"}):
        keep_to_cap("cuda:0", environ)
    assert len(calls) == 1


async def test_the_owners_cap_reaches_the_tasks_child(hub: FakeHub, start_agent: Started) -> None:
    agent = await start_agent()
    await hub.send(Limits(vram_cap=8 * GIB))
    await eventually(lambda: agent.vram_cap.bytes == 8 * GIB, "it was not told")
    assert agent.roster.tools.vram_cap.environment() == {CAP_VARIABLE: str(8 * GIB)}
    await hub.send(Limits())
    await eventually(lambda: agent.vram_cap.bytes is None, "it was not told")
    assert agent.vram_cap.environment() == {}


async def test_a_gpu_that_somebody_else_fills_takes_nothing(
    hub: FakeHub, start_agent: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start_agent()
    rooms: dict[str, Any] = {"room": (4 * GIB, 24 * GIB)}
    monkeypatch.setattr(probe, "room", lambda device: rooms["room"])
    large = offer(hub).model_copy(update={"needs_vram": 10 * GIB})
    await hub.send(large)
    refused = await hub.wait_for(Refused)
    assert refused.reason == (
        "Other programs leave 4.0 of its GPU's 24.0 GiB; the job needs at least 10.0."
    )
    rooms["room"] = None
    await hub.send(large.model_copy(update={"attempt": 2}))
    await hub.wait_for(Accepted)
    await hub.send(Drain())


class FakeDriver:
    """A GPU as NVML tells of it: who holds how much."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, held: dict[int, int], used: int) -> None:
        self.held, self.used = held, used
        processes = [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in held.items()]
        for name, answer in (
            ("nvmlDeviceGetComputeRunningProcesses", lambda handle: processes),
            ("nvmlDeviceGetGraphicsRunningProcesses", lambda handle: []),
            ("nvmlDeviceGetMemoryInfo", self.memory),
            ("nvmlDeviceGetUtilizationRates", lambda handle: SimpleNamespace(gpu=70)),
        ):
            monkeypatch.setattr(pynvml, name, answer)
        monkeypatch.setattr(probe, "_gpu", lambda device: nullcontext("the GPU"))

    def memory(self, handle: str, version: int | None = None) -> SimpleNamespace:
        return SimpleNamespace(total=24 * GIB, used=self.used)


def test_the_driver_is_asked_whose_the_memory_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        FakeDriver(monkeypatch, {child.pid: 6 * GIB, 1: 5 * GIB}, 11 * GIB)
        metrics = probe.system_metrics("cuda:0", tmp_path)
        assert (metrics.vram_used, metrics.vram_foreign) == (11 * GIB, 5 * GIB)
        assert (metrics.foreign_processes, metrics.gpu_utilization) == (1, 70.0)
        assert probe.room("cuda:0") == (19 * GIB, 24 * GIB)
    finally:
        child.communicate()


def test_a_driver_that_cannot_say_it_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = FakeDriver(monkeypatch, {}, 3 * GIB)

    def too_old(handle: str, version: int | None = None) -> SimpleNamespace:
        if version is not None:
            raise RuntimeError("Function Not Found")
        return driver.memory(handle)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", too_old)
    metrics = probe.system_metrics("cuda:0", tmp_path)
    assert (metrics.vram_used, metrics.vram_foreign) == (3 * GIB, None)
    assert probe.room("cuda:0") is None


def test_a_machine_without_gpu_says_nothing_of_it(tmp_path: Any) -> None:
    metrics = probe.system_metrics("cpu", tmp_path)
    assert (metrics.vram_foreign, metrics.foreign_processes) == (None, None)
    assert probe.room("cpu") is None
