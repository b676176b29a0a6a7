"""The history of a worker: who may read what of it, and that it has an end."""

from __future__ import annotations

import pytest

from parsyn.services import accounts, history, queue
from parsyn.services.context import Context
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.workers import Worker, WorkerEvent
from parsyn.wire.api.queue import MoveIn
from parsyn.wire.states import Role, WorkerEventKind
from tests.services.job_world import HASH, World


@pytest.fixture
def world(any_context: Context) -> World:
    return World(any_context)


def test_the_oldest_lines_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEPT", 20)
    monkeypatch.setattr(history, "PRUNED_EVERY", 10)
    rig, _ = world.worker("rig")
    other, _ = world.worker("other")
    for n in range(60):
        world.write(history.note, rig, WorkerEventKind.REFUSED, f"line {n}")
    with world.context.database.connection():
        texts = [row.text for row in WorkerEvent.select().where(WorkerEvent.worker == rig)]
        assert 20 <= len(texts) <= 30
        assert texts[-1] == "line 59"
        assert WorkerEvent.select().where(WorkerEvent.worker == other).count() == 1
        page = history.list_page(world.who, rig, 2, 0, [WorkerEventKind.REFUSED])
    assert [item["text"] for item in page["items"]] == ["line 59", "line 58"]
    assert page["total"] == len(texts)


def test_of_the_jobs_of_others_no_word_is_told(world: World) -> None:
    rig, _ = world.worker("house")
    world.write(lambda: Worker.update(kind="managed").where(Worker.id == rig).execute())
    job = world.start()
    world.fail(rig, world.run(job, rig), "bad_data")
    with world.context.database.transaction():
        stranger = accounts.create_user("b@example.org", "Bo", "x", Role.USER, HASH)
    other = Principal(stranger.id, Role.USER, ALL_SCOPES, "bearer")
    with world.context.database.connection():
        (own, *_), (theirs, *_) = (
            history.list_page(who, rig, 9, 0)["items"] for who in (world.who, other)
        )
    assert (own["text"], own["job_id"]) == ("bad_data: It broke.", job)
    assert (theirs["text"], theirs["job_id"]) == ("Somebody else's job failed.", None)
    assert theirs["kind"] == "failed"


def test_moving_in_the_queue_on_either_database(world: World) -> None:
    jobs = [world.start() for _ in range(3)]
    world.write(queue.move, world.context, world.who, jobs[2], MoveIn(before_id=jobs[0]))
    with world.context.database.connection():
        assert [row.job_id for row in queue.in_order()] == [jobs[2], jobs[0], jobs[1]]
