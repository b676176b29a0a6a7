"""What browsers hear: who may watch what, snapshots, live events, slow readers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from parsyn.hub.fanout import WAITING_LIMIT, Fanout, Watcher
from parsyn.services.accounts import start_session
from parsyn.services.context import Context
from parsyn.services.workers import fleet_topic
from parsyn.store.users import ApiKey, User
from parsyn.wire.events import EventType
from parsyn.wire.states import Scope
from parsyn.wire.worker import CloseCode, SystemMetrics
from tests.hub.conftest import Person, make_key, person
from tests.hub.job_stage import Work, make_dataset, working

DEADLINE = 10.0


@pytest.fixture
async def work(context: Context) -> AsyncIterator[Work]:
    async with working(context) as made:
        yield made


class Browser:
    """A dashboard's socket; `events` keeps what came."""

    def __init__(self, work: Work, headers: dict[str, str] | None = None) -> None:
        self.url = work.stage.url.replace("http://", "ws://") + "/ws/dashboard"
        self.headers = headers or {}
        self.events: list[dict[str, Any]] = []
        self.frames = 0
        self._waiting: list[dict[str, Any]] = []

    async def open(self, token: str | None = None) -> Browser:
        self.socket: ClientConnection = await connect(
            self.url, additional_headers=self.headers, compression=None, proxy=None
        )
        if token is not None:
            await self.say(type="authenticate", token=token)
        return self

    async def say(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def watch(self, *topics: str) -> dict[str, Any]:
        """Subscribe; the last topic's snapshot."""
        await self.say(type="subscribe", topics=topics)
        return await self.next("snapshot", topics[-1])

    async def next(self, type: str, topic: str | None = None) -> dict[str, Any]:
        """The data of the next event of a type (on a topic)."""
        async with asyncio.timeout(DEADLINE):
            while True:
                event = await self._event()
                if event["type"] == type and topic in (None, event["topic"]):
                    data: dict[str, Any] = event["data"]
                    return data

    async def _event(self) -> dict[str, Any]:
        """The next one; several may share a frame."""
        if not self._waiting:
            found = json.loads(await self.socket.recv())
            self.frames += 1
            self._waiting += found if isinstance(found, list) else [found]
        self.events.append(self._waiting.pop(0))
        return self.events[-1]

    async def closed(self) -> tuple[int, str]:
        async with asyncio.timeout(DEADLINE):
            with suppress(ConnectionClosed):
                while True:
                    await self._event()
        return self.socket.close_code or 0, self.socket.close_reason or ""


@pytest.fixture
async def browser(work: Work) -> AsyncIterator[Browser]:
    made = await Browser(work).open(work.owner.key)
    yield made
    await made.socket.close()


async def test_a_job_seen_live(work: Work, browser: Browser) -> None:
    agent = await work.worker()
    job = await work.create(name="Greeter")
    topic = f"job:{job['id']}"
    snapshot = await browser.watch(f"project:{work.owner.project_id}", topic)
    assert snapshot["job"] == await work.job(job["id"])
    await work.ask("POST", f"/training-jobs/{job['id']}/start")
    while (state := await browser.next("job.state", topic))["status"] != "running":
        pass
    assert state == await work.job(job["id"])
    offer = await agent.offer()
    await agent.metric(offer, 1, loss=2.0)
    assert await browser.next("job.metrics", topic) == {
        "points": [{"step": 1, "at": 1.0, "values": {"loss": 2.0}}]
    }
    await agent.log(offer, "Step 1.")
    (entry,) = (await browser.next("job.log", topic))["items"]
    await agent.acknowledged()
    (stored,) = (await work.ask("GET", f"/training-jobs/{job['id']}/logs"))["items"]
    assert entry == stored
    await agent.state(offer, 25)
    assert (await browser.next("job.progress", topic))["percent"] == 25
    await agent.checkpoint(offer, 25)
    assert (await browser.next("job.checkpoint", topic))["step"] == 25
    await agent.complete(offer, {"adapter_config.json": b"{}"})
    while (await browser.next("job.state", f"project:{work.owner.project_id}"))["status"] != (
        "completed"
    ):
        pass
    numbers = [event["seq"] for event in browser.events]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_the_fleet(work: Work, browser: Browser) -> None:
    assert await browser.watch("fleet") == {"workers": []}
    agent = await work.worker()
    while (await browser.next("worker.state", "fleet"))["status"] != "idle":
        pass
    await agent.send(SystemMetrics(at=1.0, cpu=55.0))
    event = await browser.next("worker.metrics", "fleet")
    assert (event["id"], event["metrics"]["cpu"]) == (agent.welcome.worker_id, 55.0)
    await work.ask("DELETE", f"/workers/{agent.welcome.worker_id}", status=204)
    while not (await browser.next("worker.state", "fleet")).get("deleted"):
        pass


async def test_nobody_watches_what_is_not_theirs(work: Work, browser: Browser) -> None:
    other = person(work.stage.app, work.context, "other@example.org")
    job = await work.create()
    theirs = await Browser(work).open(other.key)
    foreign = [
        f"job:{job['id']}", f"dataset:{work.dataset_id}", f"project:{work.owner.project_id}",
        f"fleet:{work.owner.project_id}", "worker:1", "scheduler", "job:0", "job:-1", "job:x",
        "job:99999999999999999999", "nonsense", "",
    ]  # fmt: skip
    for topic in foreign:
        await theirs.say(type="subscribe", topics=[topic])
        problem = await theirs.next("error", topic)
        assert (problem["status"], problem["code"]) == (404, "not_found")
    assert await theirs.watch("fleet") == {"workers": []}
    await work.worker()
    await work.ask("POST", f"/training-jobs/{job['id']}/start")
    await theirs.say(type="ping")
    await theirs.next("pong")
    assert {event["type"] for event in theirs.events} == {"error", "snapshot", "pong"}
    await theirs.socket.close()


async def test_what_is_unsubscribed_is_not_heard(work: Work, browser: Browser) -> None:
    job = await work.create()
    topic = f"job:{job['id']}"
    await browser.watch(topic)
    await browser.say(type="unsubscribe", topics=[topic])
    await work.ask("PATCH", f"/training-jobs/{job['id']}", {"name": "Renamed"})
    await browser.say(type="ping")
    await browser.next("pong")
    assert [event["type"] for event in browser.events] == ["snapshot", "pong"]


async def test_a_dataset_snapshot(work: Work, browser: Browser) -> None:
    dataset_id = make_dataset(work.context, work.owner, "More")
    snapshot = await browser.watch(f"dataset:{dataset_id}")
    assert snapshot["dataset"] == await work.ask("GET", f"/datasets/{dataset_id}")


def session_of(work: Work, who: Person) -> str:
    with work.context.database.transaction():
        token, _ = start_session(User.get_by_id(who.user_id), 1, "", "")
    return token


async def test_the_cookie_counts_only_from_our_own_pages(work: Work) -> None:
    cookie = f"parsyn_session={session_of(work, work.owner)}"
    ours = await Browser(work, {"Cookie": cookie, "Origin": work.stage.url}).open()
    assert "workers" in await ours.watch("fleet")
    await ours.socket.close()
    for origin in ("https://evil.example", "null", ""):
        foreign = await Browser(work, {"Cookie": cookie, "Origin": origin}).open()
        await foreign.say(type="subscribe", topics=["fleet"])
        assert (await foreign.closed())[0] == CloseCode.BAD_CREDENTIAL
        assert {event["type"] for event in foreign.events} == {"error"}
    scripted = await Browser(work, {"Cookie": cookie}).open()
    await scripted.say(type="subscribe", topics=["fleet"])
    assert (await scripted.closed())[0] == CloseCode.BAD_CREDENTIAL


async def test_credentials_that_do_not_hold(work: Work) -> None:
    agent_key = await work.worker_key()
    writer = make_key(work.context, work.owner.user_id, [Scope.WRITE])
    for token, code in (
        ("psn_nonsense", CloseCode.BAD_CREDENTIAL),
        (agent_key, CloseCode.BAD_CREDENTIAL),
        ("", CloseCode.BAD_CREDENTIAL),
        (writer, CloseCode.REVOKED),
    ):
        refused = await Browser(work).open(token)
        assert (await refused.closed())[0] == code
        assert [event["type"] for event in refused.events] == ["error"]


async def test_nonsense_is_answered(browser: Browser) -> None:
    for frame in ("{", "[]", '{"type":"subscribe"}', '{"type":"subscribe","topics":[1]}', "null"):
        await browser.socket.send(frame)
        assert (await browser.next("error"))["code"] == "malformed"
    await browser.say(type="ping")
    await browser.next("pong")


async def test_a_revoked_key_ends_its_socket(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    from parsyn.hub import socket_dashboard

    monkeypatch.setattr(socket_dashboard, "KEEP_ALIVE_SECONDS", 0.05)
    browser = await Browser(work).open(work.owner.key)
    await browser.watch("fleet")
    with work.context.database.transaction():
        ApiKey.delete().execute()
    assert (await browser.closed())[0] == CloseCode.BAD_CREDENTIAL


# --- the fan-out alone -------------------------------------------------------------------------


async def test_a_slow_reader_starts_over_and_others_do_not_notice() -> None:
    fanout, slow, quick = Fanout(), Watcher(), Watcher()
    for watcher in (slow, quick):
        fanout.add(watcher)
        fanout.subscribe(watcher, "job:1", frozenset({"job:1"}))
    heard: list[str] = []
    for n in range(WAITING_LIMIT + 5):
        fanout.pass_on(EventType.JOB_STATE, "job:1", {"n": n})
        heard += await quick.take()
    assert len(heard) == WAITING_LIMIT + 5
    (left,) = await slow.take()
    event = json.loads(left)
    assert (event["type"], event["seq"]) == ("resubscribe", WAITING_LIMIT + 1)
    assert slow.topics == {}
    assert set(fanout._by_topic["job:1"]) == {quick}


async def test_closing_comes_after_what_waits() -> None:
    fanout, watcher = Fanout(), Watcher()
    fanout.add(watcher)
    watcher.say(EventType.PONG, None, {})
    fanout.close_all(int(CloseCode.GOING_AWAY), "The hub goes away.")
    assert len(await watcher.take()) == 1
    assert watcher.closing == (CloseCode.GOING_AWAY, "The hub goes away.")


async def test_a_burst_shares_a_frame(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    from parsyn.hub import socket_dashboard

    monkeypatch.setattr(socket_dashboard, "FRAME_SECONDS", 0.05)
    browser = await Browser(work).open(work.owner.key)
    await browser.watch("fleet")
    topic = fleet_topic(work.owner.project_id)
    for n in range(50):
        work.context.bus.publish(EventType.WORKER_STATE, topic, {"id": n, "deleted": True})
    while (await browser.next("worker.state", "fleet"))["id"] != 49:
        pass
    numbers = [event["seq"] for event in browser.events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert browser.frames <= 4
    await browser.socket.close()
