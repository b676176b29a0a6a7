"""`/metrics`: who may ask, and that the figures are the true ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from parsyn.hub import figures
from parsyn.hub.app import create_app
from parsyn.services.context import Context
from tests.hub.conftest import Person
from tests.hub.job_stage import Work, working

DEADLINE = 10.0


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Scrape:
    """The figures of one answer."""

    def __init__(self, text: str) -> None:
        self._found = read(text)

    def __call__(self, name: str, **labels: str) -> float:
        return self._found[(name, frozenset(labels.items()))]


@pytest.fixture
async def work(context: Context, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Work]:
    monkeypatch.setattr(figures, "FRESH_SECONDS", 0.0)
    async with working(context) as made:
        yield made


async def scrape(work: Work) -> Scrape:
    answer = await work.stage.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    return Scrape(answer.text)


async def test_a_jobs_life_is_seen_in_the_figures(work: Work) -> None:
    job = await work.start()
    waiting = await scrape(work)
    assert waiting("parsyn_jobs", kind="training", status="queued") == 1
    assert waiting("parsyn_queue_length") == 1
    assert 0 < waiting("parsyn_queue_oldest_seconds") < DEADLINE
    assert waiting("parsyn_websockets", kind="worker") == 0

    agent = await work.worker()
    offer = await agent.offer()
    await work.status(job["id"], "running")
    await agent.metric(offer, 1, loss=2.0, learning_rate=0.1)
    await agent.acknowledged()
    running = await scrape(work)
    assert running("parsyn_workers", status="training") == 1
    assert running("parsyn_jobs", kind="training", status="running") == 1
    assert running("parsyn_queue_length") == 0
    assert running("parsyn_tasks_running") == 1
    assert running("parsyn_websockets", kind="worker") == 1
    assert running("parsyn_metric_rows_total") >= 2
    assert running("parsyn_dispatch_seconds_count") == 1
    assert running("parsyn_accept_seconds_count") == 1
    assert running("parsyn_hub_processes") == 1
    assert running("parsyn_redis_up") == 1
    assert running("parsyn_request_seconds_count", method="POST", status="2xx",
                   route="/api/v1/training-jobs/<int:job_id>/start") == 1  # fmt: skip

    await work.stage.http.request("BREW", "/api/v1/me")
    brewed = (await scrape(work))(
        "parsyn_request_seconds_count", method="(other)", status="4xx", route="(other)"
    )
    assert brewed == 1, "what strangers invent makes no new series"

    before = running("parsyn_attempts_requeued_total")
    await agent.fail(offer, "internal")
    await work.until(job["id"], lambda row: row["attempt"] == 2)
    assert (await scrape(work))("parsyn_attempts_requeued_total") == before + 1


async def test_who_may_ask(anonymous: Person, context: Context) -> None:
    assert (await anonymous.get("/metrics")).status == 200
    through_a_proxy = await anonymous.get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"})
    assert through_a_proxy.status == 403
    values: dict[str, Any] = {**context.settings.values, "hub.metrics_token": "figures, please"}
    guarded = replace(context, settings=replace(context.settings, values=values))
    async with create_app(guarded).test_app() as test_app:
        client = test_app.test_client()
        for header, status in (
            (None, 401),
            ("Bearer wrong", 401),
            ("Basic figures, please", 401),
            ("Bearer figures, please", 200),
        ):
            headers = {"Authorization": header} if header else {}
            assert (await client.get("/metrics", headers=headers)).status_code == status


async def test_many_who_ask_cost_no_more_than_one(
    anonymous: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = figures.figures.figures
    monkeypatch.setattr(figures.figures, "figures", lambda: asked.append(1) or real())
    answers = await asyncio.gather(*(anonymous.get("/metrics") for _ in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert len(asked) == 1


async def test_an_answer_carries_the_requests_id(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    given = await owner.get("/me", headers={"X-Request-ID": "abc-1"})
    assert given.headers["X-Request-ID"] == "abc-1"
    made = await owner.get("/me", headers={"X-Request-ID": "no good\x7f"})
    assert made.headers["X-Request-ID"] not in ("", "no good\x7f")
    with caplog.at_level(logging.DEBUG, "parsyn.hub.requests"):
        await owner.get("/me")
    assert any("GET /api/v1/me answered 200" in line for line in caplog.messages)


async def test_threads_of_the_database_know_for_whom_they_work(context: Context) -> None:
    from parsyn.services.asking import Asking, asking

    asking.set(Asking("r-1", "203.0.113.9"))
    for call in (context.database.read, context.database.write):
        assert (await call(asking.get)) == Asking("r-1", "203.0.113.9")
