"""The handshake of agents: keys, enrolment, who is turned away and with which words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from parsyn.store.workers import Worker
from parsyn.wire.worker import CloseCode, Drain, Heartbeat, HeartbeatAck, SystemMetrics
from tests.hub.conftest import person
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import Work, open_settings, working


@pytest.fixture
async def work(data_dir: Path, redis_url: str) -> AsyncIterator[Work]:
    context = open_settings(data_dir, redis_url, leases_heartbeat_seconds=2.0)
    async with working(context) as made:
        yield made
    context.close()


async def turned_away(work: Work, key: str, **hello: Any) -> tuple[int, str]:
    agent = FakeAgent(work.stage.url, key, **hello)
    await agent.open()
    # The hub may have closed before it was said.
    with suppress(ConnectionClosed):
        await agent.send(agent.hello())
    return await agent.refusal()


async def master_key(work: Work, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = await work.ask(
        "POST", "/master-keys", {"name": "lab", **body}, status=201
    )
    return made


async def test_keys_that_open_nothing(work: Work) -> None:
    for key, words in (
        ("", "Authorization"),
        ("wkr_unknown", "does not know the agent's key"),
        ("enroll_unknown", "does not know the enrolment key"),
        ("psn_something", "wkr_ or enroll_"),
        ("pss_something", "wkr_ or enroll_"),
    ):
        code, reason = await turned_away(work, key)
        assert code == CloseCode.BAD_CREDENTIAL
        assert words in reason


async def test_credentials_of_people_and_agents_never_mix(work: Work) -> None:
    code, _ = await turned_away(work, work.owner.key)
    assert code == CloseCode.BAD_CREDENTIAL
    own = await work.worker_key()
    enrolment = (await master_key(work))["key"]
    for key in (own, enrolment):
        answer = await work.stage.http.get(
            "/api/v1/workers", headers={"Authorization": f"Bearer {key}"}
        )
        assert answer.status_code == 401


async def test_a_key_in_the_query_string_is_not_looked_at(work: Work) -> None:
    key = await work.worker_key()
    agent = FakeAgent(work.stage.url, "")
    agent.url += f"?token={key}&key={key}"
    await agent.open()
    code, _ = await agent.refusal()
    assert code == CloseCode.BAD_CREDENTIAL


async def test_enrolment_gives_an_own_key_and_the_next_name(work: Work) -> None:
    made = await master_key(work, auto_name_prefix="gpu", default_worker_type="fine_tuner")
    names = []
    for _ in range(3):
        async with FakeAgent(work.stage.url, made["key"]) as agent:
            assert agent.welcome.api_key
            assert agent.welcome.api_key.startswith("wkr_")
            names.append(agent.welcome.name)
            await agent.leave()
            again = await agent.connect()
            assert (again.worker_id, again.api_key) == (agent.welcome.worker_id, None)
    assert names == ["gpu-1", "gpu-2", "gpu-3"]
    workers = await work.ask("GET", "/workers")
    assert {worker["worker_type"] for worker in workers["items"]} == {"fine_tuner"}
    (key,) = (await work.ask("GET", "/master-keys"))["items"]
    assert (key["enrollments"], key["revoked"]) == (3, False)
    assert "key" not in key


async def test_an_agent_keeps_its_own_name_where_it_is_free(work: Work) -> None:
    made = await master_key(work)
    for expected in ("attic", "attic-2"):
        async with FakeAgent(work.stage.url, made["key"], name="attic") as agent:
            assert agent.welcome.name == expected


async def test_an_exhausted_a_revoked_and_an_expired_key(work: Work) -> None:
    once = await master_key(work, max_enrollments=1)
    async with FakeAgent(work.stage.url, once["key"]) as agent:
        code, reason = await turned_away(work, once["key"])
        assert code == CloseCode.KEY_EXHAUSTED
        assert "1 times, its limit" in reason
        await work.ask("DELETE", f"/master-keys/{once['id']}", status=204)
        assert "was revoked" in (await turned_away(work, once["key"]))[1]
        # Whoever is enrolled stays.
        await agent.send(Heartbeat())
        assert await agent.wait_for(HeartbeatAck)
    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    short = await master_key(work, expires_at=soon.isoformat())
    while datetime.now(UTC) < soon:
        await asyncio.sleep(0.05)
    code, reason = await turned_away(work, short["key"])
    assert (code, "has expired" in reason) == (CloseCode.KEY_EXHAUSTED, True)


async def test_parallel_enrolments_stay_within_the_limit(work: Work) -> None:
    made = await master_key(work, max_enrollments=2)

    async def enrol() -> int:
        agent = FakeAgent(work.stage.url, made["key"])
        try:
            await agent.connect()
        except Exception:
            return 0
        await agent.leave()
        return 1

    assert sum(await asyncio.gather(*(enrol() for _ in range(5)))) == 2


async def test_other_protocols(work: Work) -> None:
    key = await work.worker_key()
    for protocol, code in ((0, CloseCode.PROTOCOL_TOO_OLD), (2, CloseCode.PROTOCOL_TOO_NEW)):
        got, reason = await turned_away(work, key, protocol=protocol)
        assert got == code
        assert "update the" in reason


async def test_a_first_message_that_is_no_hello(work: Work) -> None:
    key = await work.worker_key()
    for frame in ("{", '{"type": "no"}', '{"type": "heartbeat"}', '{"type":"hello"}', b"\xff"):
        agent = FakeAgent(work.stage.url, key)
        await agent.open()
        await agent.socket.send(frame)
        code, reason = await agent.refusal()
        assert code == CloseCode.BAD_MESSAGE
        assert reason


async def test_nonsense_later_on(work: Work) -> None:
    agent = await work.worker()
    for frame in ("{", '{"type":"state","task_id":1}', "[]", '{"type":"hello"}'):
        await agent.socket.send(frame)
        code, reason = await agent.closed()
        assert code == CloseCode.BAD_MESSAGE
        assert reason.startswith("Not understood")
        await agent.connect()


async def test_a_second_agent_with_the_same_key_is_refused(work: Work) -> None:
    agent = await work.worker(instance="one")
    await agent.send(Heartbeat())
    code, reason = await turned_away(work, agent.key, instance="two")
    assert code == CloseCode.ALREADY_CONNECTED
    assert "rig is connected already" in reason
    await agent.send(Heartbeat())
    assert await agent.wait_for(HeartbeatAck)


async def test_the_same_agent_takes_the_place_of_its_dead_socket(work: Work) -> None:
    old = await work.worker(instance="one")
    async with FakeAgent(work.stage.url, old.key, instance="one") as fresh:
        assert fresh.welcome.worker_id == old.welcome.worker_id
        assert (await old.closed())[0] == CloseCode.ALREADY_CONNECTED
        await fresh.send(Heartbeat())
        assert await fresh.wait_for(HeartbeatAck)
        summary = await work.ask("GET", "/workers/summary")
        assert (summary["total"], summary["online"]) == (1, 1)


async def test_removing_a_worker_closes_its_socket(work: Work) -> None:
    agent = await work.worker()
    began = time.monotonic()
    await work.ask("DELETE", f"/workers/{agent.welcome.worker_id}", status=204)
    code, reason = await agent.closed()
    assert time.monotonic() - began < 5
    assert (code, reason) == (CloseCode.REVOKED, "rig was removed.")
    code, reason = await turned_away(work, agent.key)
    assert (code, "was removed" in reason) == (CloseCode.REVOKED, True)
    await work.ask("GET", f"/workers/{agent.welcome.worker_id}", status=404)


async def test_an_owner_who_is_disabled_has_no_live_worker(work: Work) -> None:
    other = person(work.stage.app, work.context, "other@example.org")
    agent = await work.worker(of=other)
    began = time.monotonic()
    path = f"/admin/users/{other.user_id}"
    await work.ask("PATCH", path, {"disabled": True})
    code, reason = await agent.closed()
    assert time.monotonic() - began < 5
    assert code == CloseCode.REVOKED
    assert reason == "The account that owns this worker is disabled."
    assert await turned_away(work, agent.key) == (code, reason)


async def test_a_removal_that_another_process_did_without_a_word(work: Work) -> None:
    agent, other = await work.worker(), await work.worker("other")
    database = work.context.database
    gone = Worker.update(deleted_at=1.0).where(Worker.id == agent.welcome.worker_id)
    await database.write(gone.execute)
    await work.stage.app.extensions["parsyn"].parts["fleet"].turn_out()
    assert await agent.closed() == (CloseCode.REVOKED, "rig was removed.")
    await other.send(Heartbeat())
    assert await other.wait_for(HeartbeatAck)


async def test_an_enrolment_whose_answer_is_lost(work: Work) -> None:
    made = await master_key(work, max_enrollments=1, auto_name_prefix="gpu")
    lost = FakeAgent(work.stage.url, made["key"], instance="one start")
    await lost.open()
    await lost.send(lost.hello())
    await lost.socket.recv()
    await lost.vanish()
    async with FakeAgent(work.stage.url, made["key"], instance="one start") as agent:
        assert agent.welcome.name == "gpu-1"
        assert agent.welcome.api_key
    (key,) = (await work.ask("GET", "/master-keys"))["items"]
    assert key["enrollments"] == 1
    assert (await work.ask("GET", "/workers"))["total"] == 1


async def test_the_owner_of_the_machine_drains_it_there(work: Work) -> None:
    agent = await work.worker(instance="one")
    path = f"/workers/{agent.welcome.worker_id}"

    async def says(draining: bool | None) -> str:
        before = len(agent.received)
        await agent.send(Heartbeat(draining=draining))
        await agent.wait_for(HeartbeatAck, after=before)
        return str((await work.ask("GET", path))["status"])

    assert await says(True) == "draining"
    assert await says(None) == "draining"
    await agent.leave()
    await agent.connect()
    assert (await agent.wait_for(Drain)).on, "it lasts over a restart"
    assert await says(False) == "idle"
    await agent.leave()
    async with FakeAgent(work.stage.url, agent.key, draining=True, instance="one"):
        assert (await work.ask("GET", path))["status"] == "draining"


async def test_a_rotated_key(work: Work) -> None:
    agent = await work.worker()
    began = time.monotonic()
    made = await work.ask("POST", f"/workers/{agent.welcome.worker_id}/rotate-key")
    assert (await agent.closed())[0] == CloseCode.REVOKED
    assert time.monotonic() - began < 5
    assert (await turned_away(work, agent.key))[0] == CloseCode.BAD_CREDENTIAL
    async with FakeAgent(work.stage.url, made["api_key"]) as again:
        assert again.welcome.worker_id == agent.welcome.worker_id


async def test_what_a_worker_says_of_itself(work: Work) -> None:
    hardware = {"gpu": "RTX 4090", "vram_total": 24 << 30, "cpu": "Ryzen", "cores": 16}
    agent = await work.worker(hardware=hardware, device="cuda:0", max_batch_size=8)
    at = 1.0
    await agent.send(SystemMetrics(at=at, gpu_utilization=40.0, cpu=12.0, ram_used=5))
    await agent.send(Heartbeat())
    await agent.wait_for(HeartbeatAck)
    await work.stage.app.extensions["parsyn"].parts["fleet"].store()
    worker = await work.ask("GET", f"/workers/{agent.welcome.worker_id}")
    assert worker["status"] == "idle"
    assert worker["hardware"]["gpu"] == "RTX 4090"
    assert worker["metrics"]["gpu_utilization"] == 40.0
    assert worker["metrics"]["ram"] == 5
    assert (await work.ask("GET", "/workers/summary"))["avg_gpu_utilization"] == 40.0


async def test_pause_drain_and_resume(work: Work) -> None:
    agent = await work.worker()
    path = f"/workers/{agent.welcome.worker_id}"
    assert (await work.ask("POST", f"{path}/pause"))["status"] == "paused"
    job = await work.start()
    waiting = await work.until(job["id"], lambda row: row["waiting"] is not None)
    assert "rig: It is paused." in waiting["waiting"]
    assert (await work.ask("POST", f"{path}/drain"))["status"] == "draining"
    assert (await agent.wait_for(Drain)).on
    assert (await work.ask("POST", f"{path}/resume"))["status"] in ("idle", "training")
    assert not (await agent.wait_for(Drain, lambda message: not message.on)).on
    await work.status(job["id"], "running")


async def test_a_silent_agent_is_closed(data_dir: Path, redis_url: str) -> None:
    context = open_settings(data_dir, redis_url, leases_offline_seconds=0.4)
    async with working(context) as work:
        agent = await work.worker()
        assert (await agent.closed())[0] == CloseCode.SILENT
    context.close()
