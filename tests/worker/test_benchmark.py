"""Measuring the machine: the score, the cache, and that a task always goes first."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsyn.wire.worker import Benchmark, Measure, Result
from parsyn_worker import benchmark, torch_benchmark
from parsyn_worker.benchmark import (
    FALLBACK_FRESH_SECONDS,
    FRESH_SECONDS,
    REFERENCE,
    benchmark_of,
    keep,
    read_kept,
    score_of,
)
from parsyn_worker.config import AgentConfig
from parsyn_worker.torch_benchmark import largest
from tests.worker.conftest import Started, offer
from tests.worker.fake_hub import FakeHub

FIGURES = {"precision": "float16", "tflops": 160.0, "bandwidth_gbs": 900.0, "max_batch": 512}
IDENTITY = {"method": 1, "device": "RTX 4090", "driver": "570", "torch": "2.10"}
FOREVER = float("inf")


def test_the_reference_scores_a_hundred() -> None:
    assert score_of(REFERENCE.tflops, REFERENCE.bandwidth_gbs, REFERENCE.vram) == pytest.approx(100)
    assert score_of(REFERENCE.tflops, 0, 0) == pytest.approx(50)
    assert score_of(0, REFERENCE.bandwidth_gbs, 0) == pytest.approx(30)
    assert score_of(0, 0, 2 * REFERENCE.vram) == pytest.approx(40)


def test_a_machine_without_gpu_has_a_low_score_however_large_its_memory() -> None:
    found = benchmark_of({**FIGURES, "tflops": 0.6, "bandwidth_gbs": 12.0}, None, 1.0)
    assert (found.score, found.fallback) == (0.54, False)


@pytest.mark.parametrize("missing", ["tflops", "bandwidth_gbs", "max_batch"])
def test_what_is_missing_is_assumed_low_and_said(missing: str) -> None:
    measured = {name: value for name, value in FIGURES.items() if name != missing}
    found = benchmark_of(measured, 24 << 30, 1.0)
    assert found.fallback
    assert getattr(found, missing) == benchmark.ASSUMED_GPU[missing]
    assert found.score <= benchmark_of(FIGURES, 24 << 30, 1.0).score


def test_a_day_in_the_cache_for_the_same_device_driver_and_torch(tmp_path: Path) -> None:
    file = tmp_path / "state" / "benchmark.json"
    found = benchmark_of(FIGURES, 24 << 30, 1000.0)
    keep(file, IDENTITY, found)
    assert read_kept(file, IDENTITY, 1000.0) == found
    assert read_kept(file, IDENTITY, 999.0 + FRESH_SECONDS) == found
    assert read_kept(file, IDENTITY, 1000.0 + FRESH_SECONDS) is None
    assert read_kept(file, IDENTITY, 900.0) is None, "a clock that was set back"
    for name in IDENTITY:
        assert read_kept(file, {**IDENTITY, name: "other"}, 1001.0) is None
    keep(file, IDENTITY, benchmark_of({}, 24 << 30, 1000.0))
    assert read_kept(file, IDENTITY, 1000.0 + FALLBACK_FRESH_SECONDS) is None
    for damage in ("", "[]", "{}", '{"benchmark": 5, "identity": 6}'):
        file.write_text(damage)
        assert read_kept(file, IDENTITY, 1001.0) is None


@given(st.integers(0, 5000), st.integers(1, 4096))
def test_the_largest_batch_is_found_to_a_sixteenth(room: int, most: int) -> None:
    found = largest(lambda rows: rows <= room, most, FOREVER)
    right = min(room, most)
    assert found <= right
    assert right - found <= max(1, found // 16)


def test_the_search_ends_at_its_deadline() -> None:
    assert largest(lambda rows: True, 4096, -1.0) == 0


def test_what_a_gpu_cannot_take_ends_the_search_not_the_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Batch:
        def __init__(self, rows: int) -> None:
            self.rows = rows

        def same(self, *_: Any) -> Batch:
            return self

        to = float = mean = backward = same

    class Block:
        def __call__(self, batch: Batch) -> Batch:
            if batch.rows > 100:
                raise RuntimeError("CUDA error: invalid configuration argument")
            return batch

        def zero_grad(self, set_to_none: bool) -> None:
            assert set_to_none

    cuda = SimpleNamespace(synchronize=lambda: None, empty_cache=lambda: None)
    torch = SimpleNamespace(cuda=cuda, randn=lambda rows, *_, device: Batch(rows))
    monkeypatch.setitem(sys.modules, "torch", torch)
    fits = torch_benchmark._survives(Block(), "cuda:0", None)
    assert 94 <= largest(fits, 2048, FOREVER) <= 100


# --- the agent -------------------------------------------------------------------------------


@pytest.fixture
def measuring(config: AgentConfig) -> AgentConfig:
    return dataclasses.replace(config, benchmark=True)


async def test_measures_at_the_first_start_and_remembers(
    hub: FakeHub, start_agent: Started, measuring: AgentConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await start_agent(measuring)
    found = await hub.wait_for(Benchmark)
    assert not found.fallback
    assert 0 < found.score < 20
    assert found.precision in ("float32", "bfloat16")
    assert found.max_batch > 0
    lines = [record.message for record in caplog.records]
    order = ["Using the own key", "Connected", "GPU benchmark: score", "Registered as", "Ready."]
    places = [next(n for n, line in enumerate(lines) if line.startswith(o)) for o in order[:3]]
    assert places == sorted(places)

    caplog.clear()
    seen = len(hub.received)
    await start_agent(measuring)
    assert await hub.wait_for(Benchmark, after=seen) == found
    assert "(cached)" in caplog.text

    seen = len(hub.received)
    await hub.send(Measure())
    fresh = await hub.wait_for(Benchmark, after=seen)
    assert fresh.measured_at > found.measured_at


async def test_a_task_goes_first(
    hub: FakeHub,
    start_agent: Started,
    measuring: AgentConfig,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(benchmark, "QUIET_SECONDS", 0.5)
    await start_agent(measuring)
    await hub.send(offer(hub))
    await hub.wait_for(Result)
    assert not hub.of(Benchmark)
    await hub.wait_for(Benchmark)
    assert "GPU benchmark: put off, a task goes first." in caplog.text


async def test_what_takes_too_long_is_assumed(
    hub: FakeHub,
    start_agent: Started,
    measuring: AgentConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(benchmark, "LIMIT_SECONDS", 0.05)
    await start_agent(measuring)
    found = await hub.wait_for(Benchmark)
    assert found.fallback
    assert found.tflops == benchmark.ASSUMED_CPU["tflops"]


async def test_turned_off_it_measures_nothing(
    hub: FakeHub, start_agent: Started, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await start_agent()
    await hub.send(Measure())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(hub.until(lambda: bool(hub.of(Benchmark)), ""), 1.0)
    assert "asked for, but turned off" in caplog.text


async def test_messages_of_a_newer_hub_are_ignored(hub: FakeHub, start_agent: Started) -> None:
    await start_agent()
    assert hub.socket is not None
    newer: dict[str, Any] = {"type": "weather", "sunny": True}
    await hub.socket.send(json.dumps(newer))
    await hub.send(offer(hub))
    await hub.wait_for(Result)
    assert hub.connections == 1
