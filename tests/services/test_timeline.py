"""Every step of a job's life leaves a line with its cause, and a step that is refused leaves none.

That nothing is left out in any order of events is an invariant of test_task_machine.py.
"""

from __future__ import annotations

from itertools import product

import pytest

from parsyn import clock
from parsyn.services import jobs, leases, training
from parsyn.services.context import Context
from parsyn.store.jobs import Job, JobEvent
from parsyn.wire.api.training import ResumeIn
from parsyn.wire.states import JOB_TRANSITIONS, JobKind, JobStatus
from tests.services.job_world import World


@pytest.fixture
def world(context: Context) -> World:
    return World(context)


def lines(world: World, job_id: int) -> list[tuple[str, int, str]]:
    """(status, attempt, cause) as `…/events` answers them."""
    with world.context.database.connection():
        page = jobs.events(world.who, job_id, JobKind.TRAINING)
    assert page["total"] == len(page["items"])
    return [(row["status"], row["attempt"], row["cause"]) for row in page["items"]]


@pytest.mark.parametrize(("source", "target"), list(product(JobStatus, JobStatus)))
def test_a_step_and_its_line_come_together(
    world: World, source: JobStatus, target: JobStatus
) -> None:
    job_id = world.start()
    allowed = target in JOB_TRANSITIONS[source]
    with world.context.database.transaction():
        JobEvent.delete().execute()
        Job.update(status=source).where(Job.id == job_id).execute()
        moved = jobs.move(world.context, job_id, target, "Because.", attempt=3)
    assert (moved is not None) == allowed
    assert lines(world, job_id) == ([(str(target), 3, "Because.")] if allowed else [])
    assert world.job(job_id).status == (target if allowed else source)


def test_a_long_life_is_told_with_its_causes(world: World) -> None:
    job_id = world.start()
    rig, key = world.worker("rig")
    attempt = world.run(job_id, rig)
    world.checkpoint(rig, attempt, 10)
    silent = world.context.settings.number("leases.offline_seconds") + 1
    window = world.context.settings.number("leases.unreachable_seconds")
    with clock.shifted(silent):
        world.write(leases.expire, world.context, clock.now())
        world.arrive(key, attempt)
    with clock.shifted(3 * silent):
        world.write(leases.expire, world.context, clock.now())
        with clock.shifted(window):
            world.write(leases.expire, world.context, clock.now())
            world.arrive(key)
            second = world.run(job_id, rig)
            world.fail(rig, second, "user_error")
            world.write(training.resume, world.context, world.who, job_id, ResumeIn())
            third = world.run(job_id, rig)
            world.cancel(job_id)
            world.result(rig, third, outcome="cancelled")
            world.write(training.resume, world.context, world.who, job_id, ResumeIn())
            world.complete(rig, world.run(job_id, rig))
    told = lines(world, job_id)
    assert [(status, number) for status, number, _ in told] == [
        ("pending", 1), ("queued", 1), ("offered", 1), ("running", 1),
        ("unreachable", 1), ("running", 1), ("unreachable", 1),
        ("queued", 2), ("offered", 2), ("running", 2), ("failed", 2),
        ("queued", 3), ("offered", 3), ("running", 3), ("running", 3), ("cancelled", 3),
        ("queued", 4), ("offered", 4), ("running", 4), ("completed", 4),
    ]  # fmt: skip
    causes = [cause for _, _, cause in told]
    for place, words in (
        (0, "Created."), (1, "Started."), (2, "Offered to rig."), (3, "rig took it on."),
        (4, "rig has been silent for 90 s"), (5, "rig is back"),
        (7, "did not come back within 150 s. It goes on from the checkpoint at step 10."),
        (10, "It broke."), (11, "Resumed."), (14, "rig was asked to stop."),
        (15, "was asked"), (16, "Resumed."),
    ):  # fmt: skip
        assert words in causes[place], (place, causes[place])
    assert all(causes)
