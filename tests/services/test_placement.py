"""Placement over a real fleet in the database: who gets it, who is passed over and why."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.services import accounts, queue, scheduling, workers
from parsyn.services.context import Context
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job, Speed, Task
from parsyn.store.models import Model, ModelFile
from parsyn.store.workers import Worker
from parsyn.wire.states import JobStatus, Role, StatsStatus, TaskStatus
from tests.services.job_world import HASH, World

GIB = 1 << 30
GPU = {"gpu": "RTX 4090", "vram_total": 24 * GIB, "torch": "2.10", "bitsandbytes": True}
MEASURED = {"score": 100.0, "tflops": 160.0, "bandwidth_gbs": 1000.0, "max_batch": 9,
            "fallback": False, "measured_at": 1.0}  # fmt: skip


@pytest.fixture
def world(context: Context) -> World:
    return stocked(context)


@pytest.fixture
def any_world(any_context: Context) -> World:
    """`world`, once on each database."""
    return stocked(any_context)


def stocked(context: Context) -> World:
    world = World(context)
    with context.database.transaction():
        Model.update(parameters=1_000_000_000, context_length=2048).execute()
        stats = {"tokens": {"total": 1_000_000, "max": 300}}
        Dataset.update(row_count=10_000, stats=stats, stats_status=StatsStatus.READY).execute()
    return world


def rig(world: World, name: str, **columns: Any) -> int:
    """A connected GPU worker whose row says so."""
    worker_id, _ = world.worker(name)
    values = {"hardware": GPU, "benchmark": MEASURED, **columns}
    world.write(lambda: Worker.update(**values).where(Worker.id == worker_id).execute())
    return worker_id


def needing(world: World, job_id: int, **needs: Any) -> None:
    task = world.task(job_id)
    values = {**task.needs, **needs}
    world.write(lambda: Task.update(needs=values).where(Task.id == task.id).execute())


def reason(world: World, job_id: int, name: str) -> str:
    refused = world.job(job_id).placement["refused"]
    return str(next(one["reason"] for one in refused if one["name"] == name))


# --- who gets it -----------------------------------------------------------------------------


def test_the_one_that_is_done_first_gets_it(any_world: World) -> None:
    world = any_world
    rig(world, "slow", benchmark={**MEASURED, "score": 20.0, "tflops": 30.0})
    fast = rig(world, "fast")
    rig(world, "unknown", benchmark=None)
    job = world.start()
    assert world.dispatch() == 1
    assert world.task(job).worker_id == fast
    placement = world.job(job).placement
    assert [one["name"] for one in placement["ranked"]] == ["fast", "slow", "unknown"]
    predicted = [one["predicted_seconds"] for one in placement["ranked"]]
    assert predicted == sorted(predicted)
    assert placement["chosen"]["basis"] == "from its score"
    # Three epochs, of which a twentieth of the rows is held back for validation.
    assert placement["tokens"] == 2_850_000


def test_history_counts_for_more_than_the_score(any_world: World) -> None:
    world = any_world
    strong, humble = rig(world, "strong"), rig(world, "humble", benchmark={**MEASURED, "score": 9})
    past = [world.start(), world.start()]
    for job in past:
        world.cancel(job)

    def remember() -> None:
        alike = {"architecture": "LlamaForCausalLM", "parameters": 1_000_000_000,
                 "method": "sft lora", "sequence_length": 300, "seconds": 60.0}  # fmt: skip
        for job, worker, rate in ((past[0], humble, 9e3), (past[1], strong, 4e3)):
            Speed.create(job=job, worker=worker, gpu="RTX 4090", tokens_per_second=rate, **alike)

    world.write(remember)
    job = world.start()
    world.dispatch()
    assert world.task(job).worker_id == humble
    assert world.job(job).placement["chosen"]["basis"] == "from 1 run like this on this machine"


def test_busy_ones_are_ranked_with_the_time_until_they_are_free(world: World) -> None:
    busy = rig(world, "busy")
    running = world.start()
    world.run(running, busy)
    progress = {"percent": 50.0, "eta_seconds": 90.0}
    world.write(lambda: Job.update(progress=progress).where(Job.id == running).execute())
    job = world.start()
    assert world.dispatch() == 0
    row = world.job(job)
    assert row.waiting == "Waiting for busy, which is busy."
    (ranked,) = row.placement["ranked"]
    assert (ranked["busy"], ranked["wait_seconds"]) == (True, 90.0)
    assert ranked["reason"] == "It runs another job."
    assert row.placement["chosen"] is None


def test_a_much_faster_machine_is_waited_for(world: World) -> None:
    fast = rig(world, "fast")
    running = world.start()
    world.run(running, fast)
    progress = {"eta_seconds": 60.0}
    world.write(lambda: Job.update(progress=progress).where(Job.id == running).execute())
    slow = rig(world, "slow", benchmark={**MEASURED, "score": 1.0, "tflops": 0.5})
    job = world.start()
    assert world.dispatch() == 0
    assert "Waiting for fast, which is busy: on slow it would be done" in world.job(job).waiting
    # One whose end nobody knows is not waited for.
    world.write(lambda: Job.update(progress={}).where(Job.id == running).execute())
    assert world.dispatch() == 1
    assert world.task(job).worker_id == slow


def test_who_waits_for_a_machine_keeps_it_from_those_behind(world: World) -> None:
    fast = rig(world, "fast")
    running = world.start()
    world.run(running, fast)
    world.write(
        lambda: Job.update(progress={"eta_seconds": 60.0}).where(Job.id == running).execute()
    )
    slow = rig(world, "slow", benchmark={**MEASURED, "score": 1.0, "tflops": 2.0},
               hardware={**GPU, "vram_total": 8 * GIB})  # fmt: skip
    large = [world.start() for _ in range(25)]
    for job in large:
        needing(world, job, memory_bytes=20 * GIB)
    small = world.start()
    # It would be done sooner on the fast one, were it not for the others before it.
    assert world.dispatch() == 1
    assert world.task(small).worker_id == slow


def test_short_jobs_do_not_wait_for_a_better_one(world: World) -> None:
    fast = rig(world, "fast")
    running = world.start()
    world.run(running, fast)
    world.write(
        lambda: Job.update(progress={"eta_seconds": 1.0}).where(Job.id == running).execute()
    )
    rig(world, "slow", benchmark={**MEASURED, "score": 1.0, "tflops": 0.5})
    job = world.start()
    needing(world, job, tokens=1000)
    assert world.dispatch() == 1


# --- who is passed over ----------------------------------------------------------------------

CLOSED = {"days": ["mon"], "start": "03:00", "end": "03:01", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("columns", "needs", "words"),
    [
        ({"paused": True}, {}, "It is paused."),
        ({"draining": True}, {}, "It is draining."),
        ({"connection": None}, {}, "It has just lost its connection."),
        ({"worker_type": "prompter"}, {}, "Its type is prompter, so it does not train."),
        ({"limits": {"projects": [99]}}, {}, "Its owner lets it work for other projects only."),
        ({"limits": {"working_hours": [CLOSED]}}, {}, "outside of its working hours until"),
        (
            {"metrics": {"vram_foreign": 20 * GIB, "vram_total": 24 * GIB}},
            {},
            "Other programs use 20.0 of the 24.0 GiB of its GPU.",
        ),
        (
            {},
            {"memory_bytes": 40 * GIB},
            "The job needs at least 40.0 GiB of GPU memory; it has 24.0 GiB.",
        ),
        (
            {"metrics": {"vram_foreign": 2 * GIB, "vram_total": 24 * GIB}},
            {"memory_bytes": 23 * GIB},
            "The job needs at least 23.0 GiB of GPU memory; other programs leave 22.0 GiB.",
        ),
        (
            {"limits": {"vram_cap": 8 * GIB}},
            {"memory_bytes": 10 * GIB},
            "The job needs at least 10.0 GiB of GPU memory; its owner allows 8.0 GiB.",
        ),
        (
            {"hardware": {"cpu": "Xeon", "ram": 8 * GIB}},
            {"memory_bytes": 10 * GIB},
            "The job needs at least 10.0 GiB of memory; it has 8.0 GiB.",
        ),
        ({}, {"remote_code": True}, "TRUST_REMOTE_CODE"),
        (
            {"hardware": {**GPU, "bitsandbytes": False}},
            {"quantized": True},
            "bitsandbytes is missing there",
        ),
    ],
)
def test_why_it_is_passed_over(
    world: World, columns: dict[str, Any], needs: dict[str, Any], words: str
) -> None:
    rig(world, "rig", **columns)
    job = world.start()
    needing(world, job, **needs)
    assert world.dispatch() == 0
    assert words in reason(world, job, "rig")
    assert f"rig: {reason(world, job, 'rig')}" in world.job(job).waiting
    free = {
        "paused": False, "draining": False, "connection": "test:1", "worker_type": "both",
        "limits": {}, "metrics": {}, "trust_remote_code": True,
        "hardware": {**GPU, "vram_total": 80 * GIB},
    }  # fmt: skip
    world.write(lambda: Worker.update(**free).execute())
    assert world.dispatch() == 1


def test_a_model_that_brings_code_wants_to_be_trusted(world: World) -> None:
    body = b'{"model_type": "odd", "auto_map": {"AutoModel": "odd.OddModel"}}'
    world.context.storage.put("models/config.json", [body])
    with world.context.database.transaction():
        ModelFile.create(
            model=world.model, path="config.json", key="models/config.json", size=len(body),
            sha256="c0" * 32,
        )  # fmt: skip
    rig(world, "wary")
    job = world.start()
    assert world.dispatch() == 0
    assert "TRUST_REMOTE_CODE" in reason(world, job, "wary")
    trusting = rig(world, "trusting", trust_remote_code=True)
    assert world.dispatch() == 1
    assert world.task(job).worker_id == trusting


def test_what_just_fits_is_not_refused(world: World) -> None:
    rig(world, "rig", trust_remote_code=True, limits={"vram_cap": 10 * GIB})
    job = world.start()
    needing(world, job, memory_bytes=10 * GIB, remote_code=True, quantized=True)
    assert world.dispatch() == 1


def test_what_is_said_while_it_waits_stays_true(any_world: World) -> None:
    world = any_world
    rig(world, "rig", paused=True)
    job = world.start()
    world.dispatch()
    explainer = scheduling.Explainer()

    def explain() -> int:
        with world.context.database.connection():
            new = explainer.look(world.context)
        world.write(explainer.tell, world.context, new)
        return len(new)

    assert explain() == 1
    assert explain() == 0
    world.write(lambda: Worker.update(paused=False, draining=True).execute())
    assert explain() == 1
    assert reason(world, job, "rig") == "It is draining."
    assert "It is draining." in world.job(job).waiting
    world.cancel(job)
    assert explain() == 0
    assert world.job(job).status == JobStatus.CANCELLED


def test_nothing_is_said_of_what_is_about_to_be_offered(world: World) -> None:
    rig(world, "rig")
    first, second = world.start(), world.start()
    explainer = scheduling.Explainer()
    with world.context.database.connection():
        new = explainer.look(world.context)
    assert [row.job_id for row, _, _ in new] == [second]
    assert world.dispatch() == 1
    assert world.task(first).status == TaskStatus.OFFERED


# --- the queue -------------------------------------------------------------------------------


def test_the_queue_foresees_when_jobs_start(any_world: World) -> None:
    world = any_world
    busy = rig(world, "busy")
    running = world.start()
    world.run(running, busy)
    eta = {"eta_seconds": 100.0}
    world.write(lambda: Job.update(progress=eta).where(Job.id == running).execute())
    jobs = [world.start() for _ in range(3)]
    world.dispatch()
    with world.context.database.connection():
        shown = queue.show(world.context, world.who, 50, 0)
    assert [item["job"]["id"] for item in shown["items"]] == jobs
    starts = [item["starts_in_seconds"] for item in shown["items"]]
    run = shown["items"][0]["predicted_seconds"]
    assert starts[0] == pytest.approx(100.0, abs=5.0)
    assert starts[1] == pytest.approx(starts[0] + run)
    assert starts[2] == pytest.approx(starts[1] + run)


def test_what_cannot_be_foreseen_is_not_made_up(world: World) -> None:
    busy = rig(world, "busy")
    world.run(world.start(), busy)
    world.start()
    world.dispatch()
    with world.context.database.connection():
        (item,) = queue.show(world.context, world.who, 50, 0)["items"]
    assert item["starts_in_seconds"] is None
    assert item["predicted_seconds"] > 0


def test_a_priority_goes_first_and_takes_the_worker(world: World) -> None:
    rig(world, "rig")
    first, second = world.start(), world.start()
    world.write(lambda: Job.update(priority=1).where(Job.id == second).execute())
    assert world.dispatch() == 1
    assert world.task(second).status == TaskStatus.OFFERED
    assert world.task(first).status == TaskStatus.QUEUED


# --- who may know ----------------------------------------------------------------------------


def test_a_job_of_another_project_is_not_named_to_others(world: World) -> None:
    rig_id = rig(world, "house", kind="managed")
    job = world.start()
    world.run(job, rig_id)
    with world.context.database.transaction():
        stranger = accounts.create_user("b@example.org", "Bo", "x", Role.USER, HASH)
    other = Principal(stranger.id, Role.USER, ALL_SCOPES, "bearer")
    with world.context.database.connection():
        own, theirs = workers.get(world.who, rig_id), workers.get(other, rig_id)
    assert (own["current_job"]["id"], own["status"]) == (job, "training")
    assert own["current_job"]["name"] == world.job(job).name
    assert (theirs["current_job"]["id"], theirs["status"]) == (0, "training")
    assert world.job(job).name not in str(theirs)
