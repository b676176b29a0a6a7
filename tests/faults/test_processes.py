"""Real processes: killed, stopped, cut off, crashed at points; the chain must not break."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from parsyn import crash
from tests.faults.yard import PATIENCE, Rig, Yard

pytestmark = [pytest.mark.timeout(300), pytest.mark.fault_case]
on_demand = pytest.mark.on_demand


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    try:
        yield made
    finally:
        made.close()


def until(holds: Callable[[], object], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def alive(processes: list[psutil.Process]) -> bool:
    return any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def start(yard: Yard, *names: str) -> list[Rig]:
    yard.start()
    rigs = [yard.rig(name) for name in names or ("ant",)]
    for rig in rigs:
        rig.start()
    return rigs


# --- the hub ----------------------------------------------------------------------------------


def test_training_goes_on_while_the_hub_is_dead(yard: Yard) -> None:
    (rig,) = start(yard)
    job = yard.train(max_steps=15)
    yard.at_step(job, 2)
    yard.hub.kill()
    until(lambda: not rig.children(), "the task did not end without the hub")
    yard.start()
    assert yard.ended(job)["attempt"] == 1
    yard.settle()


@on_demand
def test_the_hub_is_stopped_for_longer_than_a_lease(yard: Yard) -> None:
    start(yard, "ant", "bee")
    job = yard.train(max_steps=60)
    yard.at_step(job, 2)
    yard.hub.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    yard.hub.process.send_signal(signal.SIGCONT)
    assert yard.ended(job)["attempt"] == 1
    yard.settle()


# --- agents -----------------------------------------------------------------------------------


def test_another_agent_takes_over_and_the_first_one_is_fenced(yard: Yard) -> None:
    ant, bee = start(yard, "ant", "bee")
    job = yard.train(max_steps=40)
    first = yard.at_step(job, 7)["worker_name"]
    stopped = ant if first == "ant" else bee
    children = stopped.children()
    stopped.signal(signal.SIGSTOP)
    yard.until(job, lambda row: row["attempt"] == 2 and row["status"] == "running")
    assert any("from the checkpoint at step" in cause for cause in yard.causes(job))
    stopped.signal(signal.SIGCONT)
    until(lambda: not alive(children), "the old attempt works on")
    done = yard.ended(job)
    assert (done["attempt"], done["worker_name"] != first) == (2, True)
    yard.settle()


@on_demand
def test_a_killed_agent_comes_back(yard: Yard) -> None:
    (rig,) = start(yard)
    job = yard.train(max_steps=30)
    yard.at_step(job, 7)
    children = rig.children()
    rig.kill()
    until(lambda: not alive(children), "the task outlived its agent")
    rig.start()
    assert yard.ended(job)["attempt"] == 2
    yard.settle()


def test_a_stubborn_task_is_killed_with_all_that_it_started(yard: Yard) -> None:
    (rig,) = start(yard)
    job = yard.train(max_steps=2000, stubborn=True)
    yard.at_step(job, 2)
    children = rig.children()
    assert len(children) >= 2
    yard.ask("POST", f"/training-jobs/{job.id}/cancel")
    job.stopped = True
    assert yard.ended(job)["status"] == "cancelled"
    until(lambda: not alive(children), "something of the task is left")
    after = yard.train()
    assert yard.ended(after)["status"] == "completed"
    yard.settle()


@on_demand
def test_a_worker_is_deleted_while_it_runs_a_job(yard: Yard) -> None:
    ant, bee = start(yard, "ant", "bee")
    job = yard.train(max_steps=40)
    name = yard.at_step(job, 4)["worker_name"]
    children = (ant if name == "ant" else bee).children()
    worker_id, _ = yard.furniture.workers[name]
    yard.removed.add(name)
    yard.ask("DELETE", f"/workers/{worker_id}")
    until(lambda: not alive(children), "a removed worker works on")
    assert yard.ended(job)["worker_name"] != name
    yard.settle()


@on_demand
def test_two_agents_with_one_key(yard: Yard) -> None:
    start(yard)
    job = yard.train(max_steps=30)
    yard.at_step(job, 2)
    twin = yard.rig("ant", CACHE_DIR=str(yard.folder / "twin"))
    twin.folder = yard.folder / "twin-folder"
    twin.folder.mkdir()
    twin.log = twin.folder / "agent.log"
    twin.start()
    until(lambda: "connected already" in twin.log.read_text(), "the second is not refused by name")
    assert yard.ended(job)["attempt"] == 1
    yard.settle()


# --- the network ------------------------------------------------------------------------------


@on_demand
def test_a_short_cut_requeues_nothing(yard: Yard) -> None:
    start(yard)
    job = yard.train(max_steps=40)
    yard.at_step(job, 2)
    yard.proxy.cut = True
    time.sleep(1.5)
    yard.proxy.cut = False
    assert yard.ended(job)["attempt"] == 1
    yard.settle()


@on_demand
def test_a_half_open_connection(yard: Yard) -> None:
    start(yard, "ant")
    job = yard.train(max_steps=60)
    yard.at_step(job, 4)
    yard.proxy.holds = True
    yard.until(job, lambda row: row["attempt"] == 2)
    yard.proxy.holds = False
    yard.proxy.reset()
    assert yard.ended(job)["status"] == "completed"
    yard.settle()


@on_demand
@pytest.mark.parametrize("idle", [0.2, 2.0])
def test_a_proxy_that_cuts_idle_connections(yard: Yard, idle: float) -> None:
    """Heartbeats (every half second here) are what keeps the longer one from ever cutting."""
    (rig,) = start(yard)
    yard.proxy.idle = idle
    job = yard.train(max_steps=10, pace=0.6)
    assert yard.ended(job)["attempt"] == 1
    assert ("The connection to the hub broke" in rig.log.read_text()) == (idle < 0.5)
    yard.settle()


@on_demand
def test_a_slow_network(yard: Yard) -> None:
    start(yard)
    yard.proxy.delay = 0.15
    job = yard.train(max_steps=12)
    assert yard.ended(job)["status"] == "completed"
    yard.settle()


# --- crash points -----------------------------------------------------------------------------

SAMPLE = {"manifest.result:1", "spool.before:9"}
PASSAGES = {
    "commit": (8, 25), "metrics": (1, 3), "object": (1, 3), "ack": (1, 3),
    "manifest.checkpoint": (1, 3), "manifest.result": (1,), "outbox.write": (1, 3),
    "job": (1, 4), "outbox": (1, 4),
    "offer": (1,), "handover": (1, 3), "upload": (1, 3, 9), "spool": (1, 3, 9), "key": (1,),
    "checkpoint": (1, 2),
}  # fmt: skip
"""At which passages of a point a process dies, by the point or its first word."""


def dying(*words: str) -> list[object]:
    """`point:n` of all points that are one of the words or begin with one; a sample always runs."""
    found = []
    for point in crash.POINTS:
        key = point if point in PASSAGES else point.partition(".")[0]
        if key in words:
            names = [f"{point}:{n}" for n in PASSAGES[key]]
            found += [
                pytest.param(name, marks=[] if name in SAMPLE else [on_demand]) for name in names
            ]
    return found


OF_HUB = (
    "commit",
    "metrics",
    "object",
    "ack",
    "manifest.checkpoint",
    "manifest.result",
    "outbox.write",
)


@pytest.mark.parametrize("point", dying(*OF_HUB))
def test_the_hub_dies_at(yard: Yard, point: str) -> None:
    yard.start(crash_at=point)
    first = yard.hub.process
    again = yard.start_again_when_dead()
    yard.rig().start()
    job = yard.train()
    again.join(PATIENCE)
    assert first.returncode == crash.STATUS, f"it never came to {point}"
    yard.ended(job)
    yard.settle()


@pytest.mark.parametrize("point", dying("job", "outbox"))
def test_the_job_process_dies_at(yard: Yard, point: str) -> None:
    """It is started again with the same order to die, so that it dies again and again."""
    yard.start(crash_at=point)
    yard.rig().start()
    job = yard.train()
    yard.ended(job)
    yard.hub.kill()
    yard.start()
    yard.settle()


@pytest.mark.parametrize("point", dying("offer", "handover", "upload", "spool"))
def test_the_agent_dies_at(yard: Yard, point: str) -> None:
    yard.start()
    rig = yard.rig()
    rig.start(crash_at=point)
    job = yard.train()
    assert rig.wait_for_death() == crash.STATUS
    rig.start()
    yard.ended(job)
    yard.settle()


@pytest.mark.parametrize("point", dying("key"))
def test_an_enrolling_agent_dies_at(yard: Yard, point: str) -> None:
    yard.start()
    rig = yard.rig("dog")
    rig.start(crash_at=point)
    assert rig.wait_for_death() == crash.STATUS
    rig.start()
    job = yard.train()
    yard.ended(job)
    yard.settle()


@pytest.mark.parametrize("point", dying("checkpoint"))
def test_the_task_dies_at(yard: Yard, point: str) -> None:
    yard.start()
    rig = yard.rig()
    rig.start(crash_at=point)
    job = yard.train(max_steps=9)
    yard.until(job, lambda row: row["attempt"] >= 2)
    rig.kill()
    rig.start()
    yard.ended(job)
    yard.settle()
