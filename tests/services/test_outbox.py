"""Effects after a commit: each plugin of its own, again until it worked, and never forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn import clock
from parsyn.plugin.hookspecs import hookimpl
from parsyn.services import outbox
from parsyn.services.context import Context
from parsyn.store.outbox import Outbox
from tests.services.job_world import World


class Listener:
    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.heard: list[dict[str, Any]] = []

    @hookimpl
    def job_changed(self, event: dict[str, Any]) -> None:
        if self.fails:
            self.fails -= 1
            raise RuntimeError("not now")
        self.heard.append(event)


@pytest.fixture
def listeners(context: Context) -> dict[str, Listener]:
    made = {"broken": Listener(fails=1), "good": Listener()}
    for name, listener in made.items():
        context.plugins.pluggy.register(listener, name)
    return made


def deliver_all(context: Context) -> list[bool]:
    with context.database.connection():
        rows = Outbox.select().where(Outbox.done_at.is_null()).order_by(Outbox.id)
        return [outbox.deliver(context, row.id) for row in list(rows)]


def test_one_that_fails_stops_no_other_and_is_tried_again(
    context: Context, listeners: dict[str, Listener]
) -> None:
    job_id = World(context).start()
    assert sorted(deliver_all(context)) == [False, True]
    event = {"job_id": job_id, "kind": "training", "status": "queued", "previous": "pending",
             "reason": None}  # fmt: skip
    (heard,) = listeners["good"].heard
    assert heard.pop("event_id") > 0
    assert heard == event
    assert listeners["broken"].heard == []
    with context.database.transaction():
        assert outbox.redeliver(context) == 0
    with clock.shifted(6):
        with context.database.transaction():
            assert outbox.redeliver(context) == 1
        assert deliver_all(context) == [True]
    assert [{**heard, "event_id": 0} for heard in listeners["broken"].heard] == [
        {**event, "event_id": 0}
    ]
    assert listeners["good"].heard == [event]
    assert context.queue.rq.count >= 1


def test_objects_of_nobody_are_removed(context: Context) -> None:
    context.storage.put("tasks/1/1/x", [b"x"])
    with context.database.transaction():
        outbox.delete_objects(context, ["tasks/1/1/x", "tasks/1/1/gone"])
    assert deliver_all(context) == [True]
    assert list(context.storage.list("tasks")) == []
    with clock.shifted(outbox.KEPT_SECONDS + 1), context.database.transaction():
        outbox.redeliver(context)
        assert Outbox.select().count() == 0


def test_nothing_is_written_when_nobody_listens(context: Context) -> None:
    World(context).start()
    with context.database.connection():
        assert Outbox.select().count() == 0


def test_deleting_a_job_takes_its_files_but_not_its_models(context: Context) -> None:
    from parsyn.services import jobs
    from parsyn.wire.states import JobKind

    world = World(context)
    worker_id, _ = world.worker()
    job_id = world.start()
    key = world.run(job_id, worker_id)
    world.checkpoint(worker_id, key, 10)
    world.put(key, "scratch/never-named.bin")
    world.complete(worker_id, key)
    deliver_all(context)
    kept = {info.key for info in context.storage.list("tasks")}
    folder = f"tasks/{key.task_id}/1"
    assert kept == {f"{folder}/checkpoints/10/model.bin", f"{folder}/result/adapter_config.json"}
    world.write(jobs.delete, context, world.who, job_id, JobKind.TRAINING)
    deliver_all(context)
    kept = {info.key for info in context.storage.list("tasks")}
    assert kept == {f"{folder}/result/adapter_config.json"}
