"""Reasons of failures, progress, the machine's own figures, and what a child may see."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn.wire.worker import TaskKey
from parsyn_worker import probe, spool_thread
from parsyn_worker.environment import child_device, child_environment
from parsyn_worker.failures import classify, died
from parsyn_worker.journal import MOST_LINES, Journal
from parsyn_worker.progress import Progress
from parsyn_worker.spool import Spool
from parsyn_worker.spool_thread import SpoolThread
from tests.worker.test_spool import put, waiting

KEY = TaskKey(task_id=1, attempt=1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TaskFailure(FailureReason.DIVERGED, "NaN"), "diverged"),
        (ParsynError(ErrorCode.VALIDATION_FAILED, "no"), "user_error"),
        (ParsynError(ErrorCode.BAD_DATA, "no"), "bad_data"),
        (ParsynError(ErrorCode.MODEL_UNAVAILABLE, "no"), "model_unavailable"),
        (ParsynError(ErrorCode.DIGEST_MISMATCH, "no"), "internal"),
        (MemoryError(), "out_of_memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "out_of_memory"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            "out_of_memory",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full"),
        (RuntimeError("PytorchStreamWriter: No space left on device"), "disk_full"),
        (OSError(errno.EACCES, "Permission denied"), "internal"),
        (KeyError("x"), "internal"),
    ],
)
def test_exceptions_have_reasons(error: Exception, reason: str) -> None:
    failure = classify(error)
    assert failure.reason == reason
    assert failure.message
    if reason in ("out_of_memory", "disk_full"):
        assert failure.advice


@pytest.mark.parametrize(
    ("status", "tail", "reason", "words"),
    [
        (-9, [], "out_of_memory", "memory ran out"),
        (-11, ["Fatal Python error"], "internal", "SIGSEGV"),
        (1, ["torch.OutOfMemoryError: CUDA out of memory.", "bye"], "out_of_memory", "memory"),
        (3, ["the last line"], "internal", "status 3"),
    ],
)
def test_deaths_have_reasons(status: int, tail: list[str], reason: str, words: str) -> None:
    failure = died(status, tail)
    assert failure.reason == reason
    assert words in failure.message
    assert failure.line == (tail[-1] if tail else None)


def test_percent_and_eta_of_a_training() -> None:
    progress = Progress()
    progress.enter(TaskPhase.DOWNLOADING, 50, 100)
    assert progress.state(KEY, 1, 0).percent == 0
    progress.enter(TaskPhase.TRAINING, None, None)
    for step in (11, 12, 13):
        progress.advance(step, 21, 1.0, at=100.0 + 2 * step)
    state = progress.state(KEY, 2, 0)
    assert (state.step, state.total_steps) == (13, 21)
    # A resumed run: the pace is that of its own steps, two seconds each.
    assert state.eta == 16.0
    assert state.percent == round(1300 / 21, 2)
    progress.enter(TaskPhase.SAVING, None, None)
    assert progress.state(KEY, 1, 0).percent == state.percent, "a checkpoint is not the end"
    progress.enter(TaskPhase.UPLOADING, 1, 2)
    state = progress.state(KEY, 3, 0)
    assert (state.percent, state.eta) == (99.0, None)


def test_percent_of_what_has_no_steps_never_goes_back() -> None:
    progress = Progress()
    seen = []
    for done in (10, 50, 20):
        progress.enter(TaskPhase.CONVERTING, done, 100)
        seen.append(progress.state(KEY, 1, 0).percent)
    assert seen == [9.9, 49.5, 49.5]


async def test_a_flood_of_lines_is_counted_not_kept(tmp_path: Path) -> None:
    spool = SpoolThread(tmp_path / "spool.db", 1 << 20)
    async with Journal(spool, KEY) as journal:
        for number in range(MOST_LINES + 500):
            journal.log(f"line {number}")
    stored: Any = await spool.call(waiting)
    texts = [line.text for item in stored if item.type == "log" for line in item.lines]
    assert len(texts) == MOST_LINES + 1
    assert texts[-1].startswith("… 500 more lines")
    spool.close()


async def test_a_full_disk_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(spool_thread, "FULL_SECONDS", 0.01)
    spool = SpoolThread(tmp_path / "spool.db", 1 << 20)
    left = [3]

    def full_for_a_while(opened: Spool) -> int:
        left[0] -= 1
        if left[0] >= 0:
            raise sqlite3.OperationalError("database or disk is full")
        return put(opened, "state")

    assert await asyncio.wait_for(spool.call(full_for_a_while), 10) == 1
    assert "Free space" in caplog.text
    spool.close()


async def test_a_damaged_spool_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    path.write_bytes(b"not a database at all" * 500)
    spool = SpoolThread(path, 1 << 20)
    assert await spool.call(put, "log") == 1
    assert (tmp_path / "spool.db.damaged").exists()
    spool.close()


def test_the_machine_describes_itself(tmp_path: Path) -> None:
    facts = probe.TorchFacts(torch="2.13", bf16=True)
    hardware = probe.hardware("cpu", facts)
    assert hardware.ram == psutil.virtual_memory().total
    assert (hardware.torch, hardware.bf16, hardware.gpu) == ("2.13", True, None)
    metrics = probe.system_metrics("cpu", tmp_path)
    assert 0 <= metrics.cpu <= 100
    assert metrics.disk_free
    assert metrics.gpu_utilization is None


def test_torch_is_asked_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(device: str) -> probe.TorchFacts:
        asked.append(device)
        return probe.TorchFacts(torch="2.13", device_ok=True)

    monkeypatch.setattr(probe, "ask_torch", ask)
    first = probe.torch_facts("cpu", tmp_path)
    assert probe.torch_facts("cpu", tmp_path) == first
    assert asked == ["cpu"]
    monkeypatch.setattr(probe, "FRESH_SECONDS", -1)
    probe.torch_facts("cpu", tmp_path)
    assert asked == ["cpu", "cpu"]


def test_torch_itself_answers() -> None:
    facts = probe.ask_torch("cpu")
    assert facts.error is None
    assert facts.device_ok
    assert facts.torch


def test_a_torch_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = subprocess.CompletedProcess([], 1, b"", b"Traceback\nImportError: libcuda.so\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: broken)
    assert probe.ask_torch("cuda:0").error == "ImportError: libcuda.so"


def test_a_child_sees_its_device_and_no_keys() -> None:
    agent = {"WORKER_API_KEY": "wkr_1", "HF_TOKEN": "hf_1", "PATH": "/bin"}
    env = child_environment("cpu", agent)
    assert (env["CUDA_VISIBLE_DEVICES"], env["PATH"]) == ("", "/bin")
    assert not {"WORKER_API_KEY", "HF_TOKEN"} & set(env)
    assert child_environment("cuda:1", agent)["CUDA_VISIBLE_DEVICES"] == "1"
    masked = {**agent, "CUDA_VISIBLE_DEVICES": "GPU-a, GPU-b"}
    assert child_environment("cuda:1", masked)["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert [child_device("cpu"), child_device("cuda:3")] == ["cpu", "cuda:0"]
