"""What a worker's owner allows, its history, and asking for a benchmark, over HTTP and a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from parsyn.services.availability import DAYS
from parsyn.services.context import Context
from parsyn.wire.worker import (
    Benchmark,
    Heartbeat,
    HeartbeatAck,
    Limits,
    Measure,
    SystemMetrics,
)
from tests.hub.job_stage import Work, working

RESULT = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"adapter"}
HOURS = {"days": ["mon", "fri"], "start": "22:00", "end": "06:00", "timezone": "Europe/Berlin"}


@pytest.fixture
async def work(context: Context) -> AsyncIterator[Work]:
    async with working(context) as made:
        yield made


async def test_limits_are_set_shown_and_taken_back(work: Work) -> None:
    agent = await work.worker()
    path = f"/workers/{agent.welcome.worker_id}"
    free = {"working_hours": [], "vram_cap": None, "projects": None}
    assert (await work.ask("GET", path))["limits"] == free
    limits = {"working_hours": [HOURS], "vram_cap": 8 << 30, "projects": [work.owner.project_id]}
    assert (await work.ask("PATCH", path, {"limits": limits}))["limits"] == limits
    assert (await agent.wait_for(Limits)).vram_cap == 8 << 30
    renamed = await work.ask("PATCH", path, {"name": "attic"})
    assert (renamed["name"], renamed["limits"]) == ("attic", limits)
    await agent.leave()
    await agent.connect()
    assert (await agent.wait_for(Limits, after=len(agent.received))).vram_cap == 8 << 30
    assert (await work.ask("PATCH", path, {"limits": {}}))["limits"] == free
    await agent.wait_for(Limits, lambda message: message.vram_cap is None)
    texts = [line["text"] for line in (await work.ask("GET", f"{path}/events"))["items"]]
    assert texts == ["Its limits were changed."] * 2 + ["It came, as version 0."]


async def test_outside_of_its_hours_nothing_new_is_offered_and_what_runs_goes_on(
    work: Work,
) -> None:
    agent = await work.worker()
    path = f"/workers/{agent.welcome.worker_id}"
    first = await work.start()
    offer = await agent.offer()
    await work.status(first["id"], "running")
    in_three_days = DAYS[(datetime.now(UTC).weekday() + 3) % 7]
    closed = {"days": [in_three_days], "start": "03:00", "end": "04:00"}
    await work.ask("PATCH", path, {"limits": {"working_hours": [closed]}})
    assert (await work.ask("GET", path))["status"] == "training"
    second = await work.start()
    await agent.complete(offer, RESULT)
    assert (await work.status(first["id"], "completed"))["attempt"] == 1
    words = "outside of its working hours until"
    await work.until(second["id"], lambda row: words in (row["waiting"] or ""))
    assert words in (await work.ask("GET", path))["unavailable"]
    await work.ask("PATCH", path, {"limits": {}})
    await work.status(second["id"], "running")


async def test_a_gpu_that_somebody_works_on_is_left_alone(work: Work) -> None:
    agent = await work.worker(hardware={"gpu": "RTX 4090", "vram_total": 24 << 30})
    fleet = work.stage.app.extensions["parsyn"].parts["fleet"]

    async def say(foreign: int) -> None:
        await agent.send(
            SystemMetrics(at=1.0, vram_total=24 << 30, vram_foreign=foreign, foreign_processes=1)
        )
        await agent.send(Heartbeat())
        await agent.wait_for(HeartbeatAck, after=len(agent.received))
        await fleet.store()

    await say(20 << 30)
    job = await work.start()
    waiting = await work.until(job["id"], lambda row: row["waiting"] is not None)
    assert "rig: Other programs use 20.0 of the 24.0 GiB of its GPU." in waiting["waiting"]
    shown = await work.ask("GET", f"/workers/{agent.welcome.worker_id}")
    assert shown["metrics"]["vram_foreign"] == 20 << 30
    assert shown["unavailable"] == "Other programs use 20.0 of the 24.0 GiB of its GPU."
    await say(0)
    await work.ask("POST", f"/workers/{agent.welcome.worker_id}/resume")
    await work.status(job["id"], "running")


@pytest.mark.parametrize(
    ("limits", "loc", "words"),
    [
        ({"vram_cap": 5}, ["limits", "vram_cap"], "greater than"),
        ({"projects": [99]}, ["limits", "projects", 0], "no such project"),
        ({"hours": []}, ["limits", "hours"], "not permitted"),
        (
            {"working_hours": [{**HOURS, "timezone": "Mars/Olympus"}]},
            ["limits", "working_hours", 0, "timezone"],
            "Europe/Berlin or UTC",
        ),
        (
            {"working_hours": [{**HOURS, "end": "24:00"}]},
            ["limits", "working_hours", 0, "end"],
            "pattern",
        ),
        (
            {"working_hours": [{**HOURS, "days": []}]},
            ["limits", "working_hours", 0, "days"],
            "at least 1",
        ),
    ],
)
async def test_limits_that_make_no_sense(
    work: Work, limits: Any, loc: list[Any], words: str
) -> None:
    agent = await work.worker()
    path = f"/workers/{agent.welcome.worker_id}"
    answer = await work.ask("PATCH", path, {"limits": limits}, status=422)
    assert answer["errors"][0]["loc"] == loc
    assert words in answer["errors"][0]["msg"]


async def test_a_fresh_benchmark(work: Work) -> None:
    agent = await work.worker()
    path = f"/workers/{agent.welcome.worker_id}"
    assert (await work.ask("POST", f"{path}/benchmark", status=202))["benchmark"] is None
    await agent.wait_for(Measure)
    said = Benchmark(
        score=98.0, tflops=160.0, bandwidth_gbs=990.0, max_batch=512, precision="float16",
        measured_at=5.0,
    )  # fmt: skip
    for _ in range(2):
        await agent.send(said)
    await agent.send(Heartbeat())
    await agent.wait_for(HeartbeatAck)
    shown = (await work.ask("GET", path))["benchmark"]
    assert (shown["score"], shown["precision"], shown["fallback"]) == (98.0, "float16", False)
    lines = (await work.ask("GET", f"{path}/events?kind=measured"))["items"]
    assert [line["text"] for line in lines] == [
        "Score 98.0: 160.0 TFLOPS, 990 GB/s, batches of up to 512."
    ]
    await agent.leave()
    wrong = await work.ask("GET", f"{path}/events?kind=danced", status=422)
    assert "came, went" in wrong["detail"]


async def test_a_benchmark_that_cannot_be_is_dropped(work: Work) -> None:
    agent = await work.worker()
    for score in ("NaN", "Infinity", "-1"):
        await agent.socket.send(
            f'{{"type": "benchmark", "score": {score}, "tflops": 1, "bandwidth_gbs": 1,'
            ' "max_batch": 1, "measured_at": 1}'
        )
    await agent.send(Heartbeat())
    await agent.wait_for(HeartbeatAck)
    shown = await work.ask("GET", f"/workers/{agent.welcome.worker_id}")
    assert shown["benchmark"] is None


async def test_who_is_away_is_not_measured(work: Work) -> None:
    made = await work.ask("POST", "/workers", {"name": "rig"}, status=201)
    path = f"/workers/{made['worker']['id']}/benchmark"
    answer = await work.ask("POST", path, status=409)
    assert answer["detail"] == "rig is not connected; start it and ask again."


async def test_messages_of_a_newer_agent_are_ignored(work: Work) -> None:
    agent = await work.worker()
    await agent.socket.send('{"type": "weather", "sunny": true}')
    await agent.send(Heartbeat())
    await agent.wait_for(HeartbeatAck)


async def test_the_history_tells_of_refusals_and_failures(work: Work) -> None:
    agent = await work.worker(accepts=False)
    path = f"/workers/{agent.welcome.worker_id}"
    job = await work.start()
    offer = await agent.offer()
    await agent.refuse(offer, "Its disk is nearly full.")
    await work.until(job["id"], lambda row: row["waiting"] is not None)
    lines = (await work.ask("GET", f"{path}/events?kind=refused,failed"))["items"]
    assert [(line["kind"], line["text"], line["job_id"]) for line in lines] == [
        ("refused", "Its disk is nearly full.", job["id"])
    ]
    second = await work.worker("rig-2")
    taken = await second.offer()
    await second.fail(taken, "bad_data", "Row 3 is empty.")
    await work.status(job["id"], "failed")
    lines = (await work.ask("GET", f"/workers/{second.welcome.worker_id}/events"))["items"]
    assert [(line["kind"], line["text"]) for line in lines] == [
        ("failed", "bad_data: Row 3 is empty."), ("came", "It came, as version 0."),
    ]  # fmt: skip
