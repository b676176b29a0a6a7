"""Jobs through a listening hub and a socket: offered, run, cancelled, failed, resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from parsyn.services.context import Context
from parsyn.wire.worker import Cancel
from tests.hub.job_stage import WEIGHTS, Work, working

RESULT = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"adapter"}


@pytest.fixture
async def work(context: Context) -> AsyncIterator[Work]:
    async with working(context) as made:
        yield made


async def test_a_job_from_creation_to_a_model(work: Work) -> None:
    agent = await work.worker()
    job = await work.create(name="Greeter", config={"epochs": 1})
    assert job["status"] == "pending"
    assert job["resolved_config"]["epochs"] == 1
    await work.ask("POST", f"/training-jobs/{job['id']}/start")
    offer = await agent.offer()
    running = await work.status(job["id"], "running")
    assert running["worker_name"] == "rig"
    assert running["placement"]["chosen"]["name"] == "rig"
    assert offer.spec.kind == "train"
    got = await agent.get(offer, offer.spec.model.files[0].key)
    assert got.content == WEIGHTS

    await agent.log(offer, "Loading.", "Training.")
    await agent.metric(offer, 1, loss=2.5)
    await agent.metric(offer, 2, loss=1.5)
    await agent.state(offer, 50)
    await agent.checkpoint(offer, 50, metrics={"eval_loss": 1.4}, best=True)
    await agent.acknowledged()
    half = await work.job(job["id"])
    assert half["progress"]["percent"] == 50
    assert half["metrics_latest"] == {"loss": 1.5}
    series = await work.ask("GET", f"/training-jobs/{job['id']}/metrics?names=loss")
    assert series == {"series": {"loss": [[1, 1.0, 2.5], [2, 2.0, 1.5]]}}
    logs = await work.ask("GET", f"/training-jobs/{job['id']}/logs")
    assert [line["text"] for line in logs["items"]] == ["Loading.", "Training."]
    more = await work.ask("GET", f"/training-jobs/{job['id']}/logs?since={logs['next']}")
    assert more == {"items": [], "next": logs["next"]}
    checkpoints = await work.ask("GET", f"/training-jobs/{job['id']}/checkpoints")
    assert [(c["step"], c["best"]) for c in checkpoints["items"]] == [(50, True)]

    await agent.complete(offer, RESULT, steps=100, final_loss=0.5)
    done = await work.status(job["id"], "completed")
    model = await work.ask("GET", f"/models/{done['result_model_id']}")
    assert (model["state"], model["formats"], model["base_model_id"]) == (
        "ready", ["adapter"], work.model_id,
    )  # fmt: skip
    artifacts = await work.ask("GET", f"/training-jobs/{job['id']}/artifacts")
    assert {a["path"] for a in artifacts["items"]} == set(RESULT)
    first = artifacts["items"][0]
    body = await work.stage.call(
        "GET", f"/api/v1/training-jobs/{job['id']}/artifacts/{first['id']}/download"
    )
    assert body.content == RESULT[first["path"]]
    assert await work.causes(job["id"]) == [
        "Created.", "Started.", "Offered to rig.", "rig took it on.", "Completed.",
    ]  # fmt: skip
    summary = await work.ask("GET", "/workers/summary")
    assert (summary["online"], summary["idle"]) == (1, 1)


async def test_no_worker_then_one_comes(work: Work) -> None:
    job = await work.start()
    waiting = await work.until(job["id"], lambda row: row["waiting"] is not None)
    assert waiting["status"] == "queued"
    assert waiting["waiting"].startswith("No worker is online that can train. Start one with")
    agent = await work.worker()
    await agent.offer()
    running = await work.status(job["id"], "running")
    assert running["waiting"] is None


async def test_one_task_a_worker(work: Work) -> None:
    agent = await work.worker()
    first, second = await work.start(), await work.start()
    await work.status(first["id"], "running")
    waiting = await work.until(second["id"], lambda row: row["waiting"] is not None)
    assert waiting["waiting"] == "Waiting for rig, which is busy."
    await agent.complete(await agent.offer(), RESULT)
    await work.status(second["id"], "running")


async def test_cancel_while_pending_and_queued(work: Work) -> None:
    pending, queued = await work.create(), await work.start()
    for job in (pending, queued):
        cancelled = await work.ask("POST", f"/training-jobs/{job['id']}/cancel")
        assert cancelled["status"] == "cancelled"
        again = await work.ask("POST", f"/training-jobs/{job['id']}/cancel", status=409)
        assert again["code"] == "invalid_state"


async def test_cancel_while_offered(work: Work) -> None:
    agent = await work.worker(accepts=False)
    job = await work.start()
    offer = await agent.offer()
    await work.ask("POST", f"/training-jobs/{job['id']}/cancel")
    assert (await agent.wait_for(Cancel)).reason == "stale"
    await agent.accept(offer)
    assert await agent.wait_for(Cancel, after=len(agent.received))
    assert (await work.job(job["id"]))["status"] == "cancelled"


async def test_cancel_while_running(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    offer = await agent.offer()
    await work.status(job["id"], "running")
    asked = await work.ask("POST", f"/training-jobs/{job['id']}/cancel")
    assert (asked["status"], asked["waiting"]) == ("running", "Waiting for rig to stop.")
    assert (await agent.wait_for(Cancel)).reason == "user"
    await agent.result(offer, "cancelled")
    done = await work.status(job["id"], "cancelled")
    assert done["waiting"] is None


async def test_a_job_that_completes_while_it_is_cancelled(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    offer = await agent.offer()
    await work.status(job["id"], "running")
    await work.ask("POST", f"/training-jobs/{job['id']}/cancel")
    await agent.complete(offer, RESULT)
    await agent.acknowledged()
    assert (await work.job(job["id"]))["status"] == "completed"


async def test_a_failure_of_the_user_is_final(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    await agent.fail(await agent.offer(), "out_of_memory", "2 GiB were asked for.")
    failed = await work.status(job["id"], "failed")
    assert failed["attempt"] == 1
    assert failed["failure"]["reason"] == "out_of_memory"
    assert "batch_size" in failed["failure"]["advice"]


async def test_infrastructure_is_retried_from_the_newest_checkpoint(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    offer = await agent.offer()
    await agent.checkpoint(offer, 10)
    await agent.checkpoint(offer, 20)
    await agent.fail(offer, "internal", "The driver hung.")
    second = await agent.offer(after=agent.received.index(offer) + 1)
    assert second.attempt == 2
    assert second.spec.kind == "train"
    assert second.spec.resume is not None
    assert (second.spec.resume.step, second.spec.resume.attempt) == (20, 1)
    got = await agent.get(second, second.spec.resume.files[0].key)
    assert got.content == b"weights20"
    causes = await work.causes(job["id"])
    assert "The driver hung. It goes on from the checkpoint at step 20." in causes


async def test_attempts_come_to_an_end_and_a_person_may_resume(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    seen = 0
    for attempt in (1, 2, 3, 4):
        offer = await agent.offer(after=seen)
        seen = agent.received.index(offer) + 1
        assert offer.attempt == attempt
        await agent.fail(offer, "internal")
    failed = await work.status(job["id"], "failed")
    assert failed["failure"]["message"].endswith("That was attempt 4 of 4.")
    await work.ask("POST", f"/training-jobs/{job['id']}/resume", {})
    offer = await agent.offer(after=seen)
    assert offer.attempt == 5
    running = await work.status(job["id"], "running")
    assert running["failure"] is None


async def test_a_refused_offer_goes_to_the_next(work: Work) -> None:
    first = await work.worker("strong", accepts=False, hardware={"gpu": "RTX 4090"})
    second = await work.worker("weak")
    job = await work.start()
    await first.refuse(await first.offer(), "Somebody plays a game.")
    await second.offer()
    running = await work.status(job["id"], "running")
    assert running["worker_name"] == "weak"
    passed = [(one["name"], one["reason"]) for one in running["placement"]["refused"]]
    assert passed == [("strong", "Somebody plays a game.")]


async def test_the_same_result_twice_and_another_one(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    offer = await agent.offer()
    result = await agent.complete(offer, RESULT, steps=1)
    await agent.acknowledged()
    agent.spool[(offer.task_id, offer.attempt, result.seq)] = result
    await agent.send(result)
    await agent.acknowledged()
    await agent.fail(offer, "diverged")
    await agent.acknowledged()
    done = await work.job(job["id"])
    assert done["status"] == "completed"
    models = await work.ask("GET", "/models")
    assert models["total"] == 2


async def test_a_result_must_name_what_was_stored(work: Work) -> None:
    agent = await work.worker()
    job = await work.start()
    offer = await agent.offer()
    lie = {"path": "model.safetensors", "key": "tasks/1/1/result/x", "size": 1, "sha256": "0" * 64}
    await agent.result(offer, "completed", manifest={"files": [lie], "facts": {}})
    await work.until(job["id"], lambda row: row["attempt"] == 2)
    causes = await work.causes(job["id"])
    assert any("which this attempt has not stored" in cause for cause in causes)
