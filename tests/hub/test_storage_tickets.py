"""Bytes with tickets: what a ticket allows, what it does not, and the fence round attempts."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from parsyn import clock
from parsyn.services import tasks
from parsyn.services.context import Context
from parsyn.store.jobs import Checkpoint, StoredObject, Task
from parsyn.wire.worker import Cancel, Offer, Ticket
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import ROWS, Work, working

BODY = b"some weights"


@pytest.fixture
async def work(context: Context) -> AsyncIterator[Work]:
    async with working(context) as made:
        yield made


@pytest.fixture
async def agent(work: Work) -> FakeAgent:
    return await work.worker()


@pytest.fixture
async def offer(work: Work, agent: FakeAgent) -> Offer:
    job = await work.start()
    found = await agent.offer()
    await work.status(job["id"], "running")
    return found


async def send(work: Work, method: str, url: str | None, **more: Any) -> httpx.Response:
    return await work.stage.http.request(method, url or "", **more)


async def test_put_needs_the_promised_bytes(work: Work, agent: FakeAgent, offer: Offer) -> None:
    ticket = await agent.put_ticket(offer, "result/a.bin", BODY)
    wrong = await send(work, "PUT", ticket.url, content=b"other bytes!")
    assert (wrong.status_code, wrong.json()["code"]) == (409, "digest_mismatch")
    longer = await send(work, "PUT", ticket.url, content=BODY + b"!")
    assert longer.status_code == 400
    assert "is for 12 bytes" in longer.json()["detail"]

    async def chunks() -> AsyncIterator[bytes]:
        yield BODY

    unknown = await send(work, "PUT", ticket.url, content=chunks())
    assert "Content-Length" in unknown.json()["detail"]
    good = await send(work, "PUT", ticket.url, content=BODY)
    assert good.status_code == 201
    assert good.json()["sha256"] == hashlib.sha256(BODY).hexdigest()
    again = await send(work, "PUT", ticket.url, content=BODY)
    assert again.status_code == 201
    other = await agent.put_ticket(offer, "result/a.bin", b"other bytes!")
    replaced = await send(work, "PUT", other.url, content=b"other bytes!")
    assert (replaced.status_code, replaced.json()["code"]) == (409, "conflict")


async def test_get_with_ranges(work: Work, agent: FakeAgent, offer: Offer) -> None:
    assert offer.spec.kind == "train"
    key = offer.spec.dataset.file.key
    whole = await agent.get(offer, key)
    assert (whole.status_code, whole.content) == (200, ROWS)
    part = await agent.get(offer, key, Range="bytes=10-19")
    assert (part.status_code, part.content) == (206, ROWS[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(ROWS)}"
    rest = await agent.get(offer, key, Range="bytes=50-")
    assert rest.content == ROWS[50:]
    beyond = await agent.get(offer, key, Range=f"bytes={len(ROWS)}-")
    assert beyond.status_code == 416


async def test_forged_old_and_swapped_tickets(work: Work, agent: FakeAgent, offer: Offer) -> None:
    ticket = await agent.put_ticket(offer, "result/a.bin", BODY)
    assert ticket.url
    body, _, mac = ticket.url.removeprefix("/storage/").partition(".")
    other = await agent.put_ticket(offer, "result/b.bin", BODY)
    assert other.url
    other_body = other.url.removeprefix("/storage/").partition(".")[0]
    forged = [f"{other_body}.{mac}", f"{body}.", body, f"{body}.{mac[::-1]}", "x.y", "ä.ö", "a" * 9]
    for text in forged:
        answer = await send(work, "PUT", f"/storage/{text}", content=BODY)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), text
    wrong_way = await send(work, "GET", ticket.url)
    assert wrong_way.status_code == 401
    with clock.shifted(901):
        late = await send(work, "PUT", ticket.url, content=BODY)
    assert late.status_code == 401
    assert "expired" in late.json()["detail"]


async def test_paths_outside_the_task(agent: FakeAgent, offer: Offer) -> None:
    for path in ("../x", "/etc/passwd", "a//b", "a/./b", "", "a\\b", "a\nb", "x" * 401, "a/.."):
        ticket = await agent.put_ticket(offer, path, BODY)
        assert ticket.url is None
        assert ticket.error


async def test_only_what_the_task_needs(work: Work, agent: FakeAgent, offer: Offer) -> None:
    for key in ("datasets/1/other.jsonl", "tasks/99/1/result/a", "../secret.key", ""):
        ticket = await agent.ticket(op="get", task_id=offer.task_id, attempt=offer.attempt, key=key)
        assert ticket.error == "This task does not need that object."
    stranger = await work.worker("stranger")
    for attempt in (offer.attempt, offer.attempt + 1):
        ticket = await stranger.put_ticket(
            offer.model_copy(update={"attempt": attempt}), "result/a", BODY
        )
        assert ticket.error == "The task is not this agent's any more."
    chat = await agent.ticket(op="get", chat_id="nothing", key="models/1/model.safetensors")
    assert chat.error


async def test_a_put_of_a_past_attempt(work: Work, agent: FakeAgent, offer: Offer) -> None:
    before = await agent.put_ticket(offer, "result/a.bin", BODY)
    context = work.context
    with context.database.transaction():
        tasks.lose(context, Task.get_by_id(offer.task_id), "It went away.")
    refused = await send(work, "PUT", before.url, content=BODY)
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_attempt")
    assert (await agent.wait_for(Cancel)).reason == "stale"
    with context.database.connection():
        assert StoredObject.select().count() == 0


async def test_reports_of_a_past_attempt_change_nothing(
    work: Work, agent: FakeAgent, offer: Offer
) -> None:
    """Each is acknowledged, so that the agent's spool empties, and answered with a cancel."""
    context = work.context
    stored = await agent.put(offer, "checkpoints/9/model.bin", BODY)
    with context.database.transaction():
        tasks.lose(context, Task.get_by_id(offer.task_id), "It went away.")
    second = await agent.offer(after=agent.received.index(offer) + 1)
    seen = len(agent.received)
    await agent.state(offer, 90)
    await agent.log(offer, "from the past")
    await agent.metric(offer, 7, loss=9.0)
    await agent.result(offer, "completed", manifest={"files": [stored], "facts": {}})
    await agent.acknowledged()
    assert await agent.wait_for(Cancel, lambda m: m.attempt == offer.attempt, after=seen)
    job = await work.job(offer.job_id)
    assert (job["status"], job["attempt"]) == ("running", 2)
    assert job["progress"]["step"] is None
    logs = await work.ask("GET", f"/training-jobs/{offer.job_id}/logs")
    assert logs["items"] == []
    await agent.complete(second, {"adapter_config.json": b"{}"})
    await work.status(offer.job_id, "completed")


async def test_an_agent_that_lies_about_its_attempt(
    work: Work, agent: FakeAgent, offer: Offer
) -> None:
    ahead = offer.model_copy(update={"attempt": 7})
    await agent.result(ahead, "failed")
    await agent.acknowledged()
    assert (await work.job(offer.job_id))["status"] == "running"
    ticket = await agent.put_ticket(ahead, "result/a", BODY)
    assert isinstance(ticket, Ticket)
    assert ticket.error


async def test_checkpoints_beyond_the_limit_go_but_the_best_stays(
    work: Work, agent: FakeAgent, offer: Offer
) -> None:
    await agent.checkpoint(offer, 10, best=True)
    for step in (20, 30, 40, 50):
        await agent.checkpoint(offer, step)
    await agent.acknowledged()
    page = await work.ask("GET", f"/training-jobs/{offer.job_id}/checkpoints")
    assert [row["step"] for row in page["items"]] == [50, 40, 30, 10]


async def test_a_damaged_checkpoint_is_passed_over(
    work: Work, agent: FakeAgent, offer: Offer
) -> None:
    await agent.checkpoint(offer, 10)
    await agent.checkpoint(offer, 20)
    await agent.acknowledged()
    with work.context.database.connection():
        newest = Checkpoint.get(Checkpoint.step == 20)
    work.context.storage.put(newest.files[0]["key"], [b"cut"])
    await agent.fail(offer, "internal")
    second = await agent.offer(after=agent.received.index(offer) + 1)
    assert second.spec.kind == "train"
    assert second.spec.resume is not None
    assert second.spec.resume.step == 10
