"""Silence, its two windows, and who owns a task afterwards."""

from __future__ import annotations

import pytest

from parsyn import clock
from parsyn.services import leases, presence, scheduling
from parsyn.services.context import Context
from parsyn.services.results import Outcome
from parsyn.store.jobs import JobEvent
from parsyn.store.workers import Worker
from parsyn.wire.worker import TaskKey
from tests.services.job_world import World


@pytest.fixture
def world(context: Context) -> World:
    return World(context)


def expire(world: World) -> None:
    world.write(leases.expire, world.context, clock.now())


def status(world: World, worker_id: int) -> str:
    with world.context.database.connection():
        return str(Worker.get_by_id(worker_id).status)


def test_a_worker_that_is_heard_keeps_its_task(world: World) -> None:
    worker_id, _ = world.worker()
    job_id = world.start()
    world.run(job_id, worker_id)
    with clock.shifted(89):
        world.hear(worker_id)
        expire(world)
    with clock.shifted(178):
        expire(world)
        assert status(world, worker_id) == "idle"
    assert world.task(job_id).unreachable_since is None
    assert world.job(job_id).status == "running"


def test_silence_makes_it_unreachable_then_lost(world: World) -> None:
    worker_id, _ = world.worker()
    job_id = world.start()
    key = world.run(job_id, worker_id)
    world.checkpoint(worker_id, key, 40)
    with clock.shifted(91):
        expire(world)
        assert status(world, worker_id) == "offline"
        task = world.task(job_id)
        assert (task.status, task.attempt) == ("running", 1)
        assert task.unreachable_since is not None
        assert world.job(job_id).status == "running"
    with clock.shifted(150):
        expire(world)
        assert world.task(job_id).status == "running"
    with clock.shifted(152):
        expire(world)
    task = world.task(job_id)
    assert (task.status, task.attempt, task.worker_id) == ("queued", 2, None)
    assert task.resume["step"] == 40
    assert world.job(job_id).status == "queued"
    with world.context.database.connection():
        causes = [row.cause for row in JobEvent.select().order_by(JobEvent.id)]
    assert causes[-2:] == [
        "rig has been silent for 90 s; it has 60 s more to come back.",
        "rig did not come back within 150 s. It goes on from the checkpoint at step 40.",
    ]


def test_coming_back_inside_the_window_loses_nothing(world: World) -> None:
    worker_id, api_key = world.worker()
    job_id = world.start()
    key = world.run(job_id, worker_id)
    with clock.shifted(120):
        expire(world)
        arrival = world.arrive(api_key, key)
        assert arrival.welcome.stale == ()
        assert arrival.running == {key}
        expire(world)
    task = world.task(job_id)
    assert (task.status, task.attempt, task.unreachable_since) == ("running", 1, None)
    assert status(world, worker_id) == "idle"
    assert world.complete(worker_id, key) is Outcome.APPLIED


def test_coming_back_after_the_takeover_is_stale(world: World) -> None:
    first, api_key = world.worker("first")
    job_id = world.start()
    old = world.run(job_id, first)
    with clock.shifted(91):
        expire(world)
    with clock.shifted(160):
        second, _ = world.worker("second")
        expire(world)
        new = world.run(job_id, second)
        assert new.attempt == 2
        arrival = world.arrive(api_key, old)
        assert arrival.welcome.stale == (old,)
    assert world.complete(first, old) is Outcome.STALE
    assert not world.checkpoint(first, old, 99)
    assert world.complete(second, new) is Outcome.APPLIED
    assert world.job(job_id).status == "completed"


def test_a_cancelled_job_of_a_lost_worker_is_cancelled_not_retried(world: World) -> None:
    worker_id, _ = world.worker()
    job_id = world.start()
    world.run(job_id, worker_id)
    world.cancel(job_id)
    assert world.job(job_id).status == "running"
    with clock.shifted(91):
        expire(world)
    with clock.shifted(152):
        expire(world)
    assert world.job(job_id).status == "cancelled"


def test_an_agent_that_never_stops_is_not_waited_for(world: World) -> None:
    worker_id, _ = world.worker()
    job_id = world.start()
    key = world.run(job_id, worker_id)
    world.cancel(job_id)
    with clock.shifted(leases.STOP_SECONDS + 1):
        world.hear(worker_id)
        expire(world)
    assert world.job(job_id).status == "cancelled"
    assert world.complete(worker_id, key) is Outcome.CONFLICT


def test_an_offer_without_an_answer_goes_to_the_next_best(world: World) -> None:
    first, _ = world.worker("first")
    second, _ = world.worker("second")
    job_id = world.start()
    world.dispatch()
    task = world.task(job_id)
    assert (task.status, task.worker_id) == ("offered", first)
    with clock.shifted(11):
        assert world.write(scheduling.expire_offers, world.context, clock.now()) == 1
        world.dispatch()
    task = world.task(job_id)
    assert (task.status, task.worker_id, task.attempt) == ("offered", second, 1)


def test_an_agent_that_was_restarted_gives_its_task_back(world: World) -> None:
    worker_id, api_key = world.worker()
    job_id = world.start()
    key = world.run(job_id, worker_id)
    arrival = world.arrive(api_key)
    assert arrival.running == {key}
    world.write(leases.forgotten, world.context, worker_id, key.task_id, key.attempt)
    task = world.task(job_id)
    assert (task.status, task.attempt) == ("queued", 2)


def test_a_connection_that_broke_at_an_offer(world: World) -> None:
    """With the acceptance lost, the agent's word counts; with the offer lost, it is taken back."""
    worker_id, api_key = world.worker()
    job_id = world.start()
    world.dispatch()
    world.arrive(api_key)
    assert world.task(job_id).status == "queued"
    world.dispatch()
    task = world.task(job_id)
    assert (task.status, task.worker_id) == ("offered", worker_id)
    world.arrive(api_key, TaskKey(task_id=task.id, attempt=task.attempt))
    assert world.job(job_id).status == "running"


def test_an_offer_to_a_worker_that_hangs_up_goes_to_another_at_once(world: World) -> None:
    first, _ = world.worker("first")
    job_id = world.start()
    world.dispatch()
    world.write(presence.leave, world.context, "test:1")
    assert world.task(job_id).status == "queued"
    second, _ = world.worker("second")
    world.dispatch()
    assert world.task(job_id).worker_id == second
    assert first != second


def test_attempts_are_limited(world: World) -> None:
    worker_id, api_key = world.worker()
    job_id = world.start()
    for attempt in range(1, 5):
        key = world.run(job_id, worker_id)
        assert key.attempt == attempt
        world.arrive(api_key)
        world.write(leases.forgotten, world.context, worker_id, key.task_id, key.attempt)
    job = world.job(job_id)
    assert job.status == "failed"
    assert job.failure["reason"] == "worker_lost"
    assert job.failure["advice"]
