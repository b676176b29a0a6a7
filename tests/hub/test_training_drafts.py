"""What a person is told while a training is being thought out."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.services.context import Context
from parsyn.store.datasets import Dataset
from parsyn.store.models import Model, ModelFile
from parsyn.store.workers import Worker
from parsyn.wire.states import StatsStatus, WorkerStatus
from tests.hub.conftest import Person
from tests.hub.job_stage import make_dataset, make_model

GIB = 1 << 30
CONFIG = (
    b'{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,'
    b' "num_attention_heads": 4, "num_key_value_heads": 2}'
)
TOKENS = {"total": 20_000, "max": 700}


@pytest.fixture
def body(context: Context, owner: Person) -> dict[str, Any]:
    """A model and a measured dataset of 200 rows."""
    model_id = make_model(context, owner)
    dataset_id = make_dataset(
        context, owner, row_count=200, stats_status=StatsStatus.READY, stats={"tokens": TOKENS}
    )
    with context.database.transaction():
        stored = context.storage.put(f"models/{model_id}/config.json", [CONFIG])
        ModelFile.create(model=model_id, path="config.json", key=stored.key, size=stored.size,
                         sha256=stored.sha256)  # fmt: skip
        Model.update(parameters=200_000).where(Model.id == model_id).execute()
    return {"model_id": model_id, "dataset_id": dataset_id}


async def examine(who: Person, body: dict[str, Any]) -> dict[str, Any]:
    answer = await who.post("/training-jobs/validate", body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.body
    return found


def make_worker(context: Context, owner: Person, **columns: Any) -> int:
    with context.database.transaction():
        row = Worker.create(
            **{"user": owner.user_id, "project": owner.project_id, "name": "rig", "key_hash": "x",
               "status": WorkerStatus.IDLE, "worker_type": "both", **columns}
        )  # fmt: skip
        return int(row.id)


async def test_it_says_what_the_run_comes_to(owner: Person, body: dict[str, Any]) -> None:
    found = await examine(owner, {**body, "config": {"epochs": 2}})
    assert (found["ok"], found["errors"]) == (True, [])
    estimate = found["estimate"]
    assert (estimate["training_rows"], estimate["validation_rows"]) == (190, 10)
    assert (estimate["steps"], estimate["effective_batch"]) == (24, 16)
    assert estimate["tokens"] == 190 * 2 * 100
    assert estimate["max_length"] == 512
    assert estimate["trained_parameters"] == 2 * 16 * (2 * 128 + 2 * 96 + 3 * 192)
    assert estimate["memory_bytes"] > 2 * 200_000
    assert found["resolved_config"]["epochs"] == 2


async def test_everything_that_is_wrong_is_said_at_once(
    owner: Person, body: dict[str, Any]
) -> None:
    wrong = {
        "dataset_id": 999,
        "model_id": body["model_id"],
        "config": {"epochs": -1, "lora_rr": 8},
        "worker_selection": {"worker_ids": [77]},
    }
    found = await examine(owner, wrong)
    assert not found["ok"]
    assert [error["loc"] for error in found["errors"]] == [
        ["dataset_id"],
        ["config", "lora_rr"],
        ["config", "epochs"],
        ["worker_selection", "worker_ids", 0],
    ]
    assert found["estimate"] is None
    refused = await owner.post("/training-jobs", wrong)
    assert refused.body["errors"] == found["errors"]


async def test_nothing_is_needed_to_begin_with(owner: Person) -> None:
    found = await examine(owner, {})
    assert (found["ok"], found["estimate"]) == (True, None)
    assert found["resolved_config"]["lora_r"] == 16
    assert (await owner.get("/training-jobs")).body["total"] == 0


async def test_a_preset_is_counted_in(owner: Person, body: dict[str, Any]) -> None:
    found = await examine(owner, {**body, "preset": "quick"})
    assert found["resolved_config"]["lora_r"] == 8
    assert found["estimate"]["steps"] == 12  # of the one epoch; 60 would be more


async def codes(who: Person, body: dict[str, Any]) -> list[str]:
    return [check["code"] for check in (await examine(who, body))["checks"]]


async def test_it_warns_of_what_is_worth_knowing(
    owner: Person, context: Context, body: dict[str, Any]
) -> None:
    assert await codes(owner, body) == ["rows_cut", "no_worker"]
    few = make_dataset(context, owner, "Few", row_count=3)
    assert await codes(owner, {**body, "dataset_id": few}) == ["few_rows", "no_worker"]
    worker = make_worker(context, owner, hardware={"gpu": None, "cores": 8})
    assert await codes(owner, body) == ["rows_cut", "no_gpu"]
    make_worker(context, owner, name="big", key_hash="y",
                hardware={"gpu": "NVIDIA L4", "vram_total": 24 * GIB})  # fmt: skip
    assert await codes(owner, body) == ["rows_cut"]
    only = {"mode": "specific_user_workers", "worker_ids": [worker]}
    assert await codes(owner, {**body, "worker_selection": only}) == ["rows_cut", "no_gpu"]
    h100 = {"gpu_type": "H100"}
    assert await codes(owner, {**body, "worker_selection": h100}) == ["rows_cut", "none_selected"]


async def test_it_says_that_the_memory_is_too_little(
    owner: Person, context: Context, body: dict[str, Any]
) -> None:
    make_worker(context, owner, hardware={"gpu": "NVIDIA L4", "vram_total": 24 * GIB})
    with context.database.transaction():
        Model.update(parameters=70 * 10**9).where(Model.id == body["model_id"]).execute()
    found = await examine(owner, body)
    check = found["checks"][-1]
    assert (check["code"], check["level"]) == ("little_memory", "warn")
    assert check["params"]["largest"] == 24 * GIB
    assert check["params"]["needed"] > 2 * 70 * 10**9
    assert "130.4 GiB" in check["message"]
    assert (await codes(owner, {**body, "config": {"method": "qlora"}}))[-1] == "little_memory"


async def test_others_things_are_not_told_of(
    owner: Person, other: Person, context: Context, body: dict[str, Any]
) -> None:
    make_worker(context, owner, hardware={"gpu": "NVIDIA L4", "vram_total": 24 * GIB})
    found = await examine(other, body)
    assert [error["msg"] for error in found["errors"]] == [
        "There is no such dataset.",
        "There is no such model.",
    ]
    assert [check["code"] for check in found["checks"]] == ["no_worker"]
    assert (
        await other.post("/training-jobs/validate", {"project_id": owner.project_id})
    ).status == 422


async def test_a_stored_job_is_looked_at_before_it_runs(
    owner: Person, context: Context, body: dict[str, Any]
) -> None:
    job = (await owner.post("/training-jobs", {**body, "preset": "quick"})).body

    async def look() -> dict[str, Any]:
        answer = await owner.post(f"/training-jobs/{job['id']}/preflight")
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.body
        return found

    found = await look()
    assert (found["ok"], found["verdict"]) == (True, "amber")
    assert [check["code"] for check in found["checks"]] == ["rows_cut", "no_worker"]
    assert found["estimate"]["steps"] == 12
    make_worker(context, owner, hardware={"gpu": "NVIDIA L4", "vram_total": 24 * GIB})
    with context.database.transaction():
        Dataset.update(stats={"tokens": {**TOKENS, "max": 100}}).execute()
    assert (await look())["verdict"] == "green"
    with context.database.transaction():
        Dataset.update(status="invalid", summary="It is a picture.").execute()
    found = await look()
    assert (found["ok"], found["verdict"]) == (False, "red")
    assert "It is a picture." in found["checks"][0]["message"]
    with context.database.transaction():
        Dataset.delete().execute()
    assert (await look())["checks"][0]["message"] == "The dataset of this job was deleted."
