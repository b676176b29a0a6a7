"""Queue, events and background jobs on Debian's redis-server: flushed, killed, restarted."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parsyn import clock
from parsyn.hub.app import create_app
from parsyn.pubsub import GAP, Bus
from parsyn.services import datasets, health, outbox
from parsyn.services.context import Context
from parsyn.store.datasets import Dataset
from parsyn.store.outbox import Outbox
from parsyn.wire.states import DatasetStatus, Role
from tests.conftest import opened
from tests.hub.conftest import Person, person, run_jobs
from tests.redis_server import RedisServer

DEADLINE = 15.0
ROW = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}\n'


@pytest.fixture
def server() -> Iterator[RedisServer]:
    made = RedisServer()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def context(data_dir: Path, server: RedisServer) -> Iterator[Context]:
    yield from opened(data_dir, server.url, "sqlite")


def until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


# --- events ------------------------------------------------------------------------------------


@pytest.fixture
async def buses(server: RedisServer) -> AsyncIterator[tuple[Bus, Bus, list[tuple[str, str]]]]:
    """One that speaks, one that listens, and what that one heard."""
    speaker, listener = Bus(server.url), Bus(server.url)
    heard: list[tuple[str, str]] = []

    def hear(type: str, topic: str, data: dict[str, Any]) -> None:
        heard.append((type, topic))

    listening = asyncio.create_task(listener.listen(hear))
    await reached(speaker, "first", heard)
    yield speaker, listener, heard
    while not listening.done():
        # The Redis client swallows a cancellation that comes while it connects.
        listening.cancel()
        await asyncio.wait({listening}, timeout=0.05)
    for bus in (speaker, listener):
        bus.close()


async def reached(bus: Bus, topic: str, heard: list[tuple[str, str]]) -> None:
    """Say it until it is heard."""
    async with asyncio.timeout(DEADLINE):
        while ("said", topic) not in heard:
            bus.publish("said", topic, {})
            await asyncio.sleep(0.05)


async def test_events_go_on_after_redis_was_killed_and_the_gap_is_told(
    server: RedisServer, buses: tuple[Bus, Bus, list[tuple[str, str]]]
) -> None:
    speaker, listener, heard = buses
    server.kill()
    speaker.publish("said", "into the void", {})
    listener.publish("said", "to itself", {})
    await asyncio.to_thread(server.start)
    await reached(speaker, "back", heard)
    assert [type for type, _ in heard].count(GAP) == 1
    assert ("said", "into the void") not in heard
    assert ("said", "to itself") in heard, "its own events need no Redis"


async def test_what_is_meant_for_one_process_reaches_only_that_one(
    server: RedisServer, buses: tuple[Bus, Bus, list[tuple[str, str]]]
) -> None:
    speaker, listener, heard = buses
    speaker.send("somebody else", "whispered", {})
    speaker.send(listener.origin, "told", {})
    await reached(speaker, "after", heard)
    assert ("told", "hub") in heard
    assert "whispered" not in [type for type, _ in heard]


async def test_a_flush_takes_no_event(
    server: RedisServer, buses: tuple[Bus, Bus, list[tuple[str, str]]]
) -> None:
    speaker, _, heard = buses
    await asyncio.to_thread(server.flush)
    await reached(speaker, "after the flush", heard)
    assert GAP not in [type for type, _ in heard]


# --- queue -------------------------------------------------------------------------------------


@pytest.fixture
async def owner(context: Context) -> AsyncIterator[Person]:
    app = create_app(context)
    async with app.test_app():
        yield person(app, context, "owner@example.org", Role.OWNER)


async def upload(owner: Person) -> int:
    upload = {"filename": "a.jsonl", "size": len(ROW), "purpose": "dataset"}
    made = (await owner.post("/uploads", upload)).body
    assert (await owner.put(f"/uploads/{made['id']}/parts/1", ROW)).status == 200
    await owner.post(f"/uploads/{made['id']}/complete", {})
    dataset = await owner.post("/datasets", {"name": "A", "upload_id": made["id"]})
    assert dataset.status == 201, dataset.body
    return int(dataset.body["id"])


def status(context: Context, dataset_id: int) -> str:
    with context.database.connection():
        return str(Dataset.get_by_id(dataset_id).status)


def test_a_key_is_in_the_queue_once(context: Context, server: RedisServer) -> None:
    for _ in range(3):
        assert context.queue.enqueue("datasets.validate", 1, 1, key="one")
    assert context.queue.rq.count == 1
    assert context.queue.waits("one")
    server.flush()
    assert not context.queue.waits("one")
    server.kill()
    assert not context.queue.enqueue("datasets.validate", 1, 1, key="one"), "no error, no job"
    assert context.queue.waits("one"), "nobody knows, so nothing is done twice"
    assert "does not answer" in health.redis(context)
    server.start()
    assert context.queue.enqueue("datasets.validate", 1, 1, key="one")
    assert health.redis(context) == "ok"


async def test_work_that_a_flush_took_is_found_again(
    owner: Person, context: Context, server: RedisServer
) -> None:
    dataset_id = await upload(owner)
    assert context.queue.rq.count == 1
    server.flush()
    run_jobs(context)
    assert status(context, dataset_id) == DatasetStatus.VALIDATING
    with clock.shifted(3600):
        assert context.database.write_sync(datasets.find_lost, context) == 1
        run_jobs(context)
    assert status(context, dataset_id) == DatasetStatus.READY


async def test_an_effect_whose_nudge_was_lost_is_delivered(
    context: Context, server: RedisServer
) -> None:
    context.storage.put("models/1/a", [b"x"])
    context.database.write_sync(outbox.delete_objects, context, ["models/1/a"])
    server.flush()
    run_jobs(context)
    assert [info.key for info in context.storage.list("models")] == ["models/1/a"]
    with clock.shifted(60):
        assert context.database.write_sync(outbox.redeliver, context) == 1
        run_jobs(context)
    assert list(context.storage.list("models")) == []
    with context.database.connection():
        assert Outbox.get().done_at is not None


async def test_the_job_process_outlives_its_redis(
    owner: Person, context: Context, server: RedisServer
) -> None:
    env = {**os.environ, "PARSYN_HUB_REDIS": server.url}
    process = subprocess.Popen(
        [sys.executable, "-m", "parsyn.cli.main", "jobs", "--data", str(context.settings.data_dir)],
        env=env,
    )  # fmt: skip
    try:
        first = await upload(owner)
        await asyncio.to_thread(
            until, lambda: status(context, first) == DatasetStatus.READY, "it never worked"
        )
        server.kill()
        await asyncio.to_thread(server.start)
        second = await upload(owner)
        await asyncio.to_thread(
            until, lambda: status(context, second) == DatasetStatus.READY, "it did not come back"
        )
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(20)
