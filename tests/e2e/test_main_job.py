"""The main job over the real socket, on a tiny random model: train, chat, evaluate, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from parsyn.demo.client import HubClient
from tests.appliance import Appliance

pytestmark = pytest.mark.e2e
CONFIG = {
    "max_steps": 8,
    "batch_size": 4,
    "gradient_accumulation_steps": 1,
    "learning_rate": 5e-3,
    "max_seq_length": 128,
    "eval_steps": 4,
    "save_steps": 4,
}


@pytest.fixture(scope="module")
def trained(hub: HubClient, tiny: dict[str, Any], dataset: dict[str, Any]) -> dict[str, Any]:
    job = hub.call(
        "POST",
        "/api/v1/training-jobs",
        {
            "name": "First",
            "dataset_id": dataset["id"],
            "model_id": tiny["id"],
            "config": CONFIG,
            "export": ["gguf"],
        },
    )
    assert job["status"] == "pending"
    hub.call("POST", f"/api/v1/training-jobs/{job['id']}/start")
    return hub.finish(f"/api/v1/training-jobs/{job['id']}", seconds=180)


def test_it_trains_and_tells_how_it_went(hub: HubClient, trained: dict[str, Any]) -> None:
    path = f"/api/v1/training-jobs/{trained['id']}"
    assert trained["progress"]["step"] == 8
    assert trained["attempt"] == 1
    series = hub.call("GET", f"{path}/metrics")["series"]
    assert [step for step, _, _ in series["loss"]] == list(range(1, 9))
    for name in ("learning_rate", "grad_norm", "tokens_per_second", "eval_loss"):
        assert series[name], name
    assert series["loss"][-1][2] < series["loss"][0][2]
    logs = hub.call("GET", f"{path}/logs?since=0")
    assert logs["items"], "logs are kept from second 0"
    checkpoints = hub.call("GET", f"{path}/checkpoints")["items"]
    assert {point["step"] for point in checkpoints} >= {4, 8}
    assert any(point["best"] for point in checkpoints)
    assert hub.call("GET", f"{path}/samples")["items"]
    events = hub.call("GET", f"{path}/events")["items"]
    states = [event["status"] for event in events]
    assert states.index("queued") < states.index("running") < states.index("completed")
    assert all(event["cause"] for event in events)
    assert trained["placement"]["chosen"]["name"]


def test_the_next_one_like_it_is_foretold(hub: HubClient, trained: dict[str, Any]) -> None:
    path = f"/api/v1/training-jobs/{trained['id']}"
    again = hub.call("POST", f"{path}/duplicate", {"changes": {"export": []}})
    path = f"/api/v1/training-jobs/{again['id']}"
    hub.call("POST", f"{path}/start")
    placed = hub.wait(path, lambda row: row["placement"]["chosen"] is not None, seconds=60)
    hub.call("POST", f"{path}/cancel")
    hub.wait(path, lambda row: row["status"] == "cancelled", seconds=60)
    chosen = placed["placement"]["chosen"]
    assert chosen["basis"] == "from 1 run like this on this machine"
    assert 0 < chosen["predicted_seconds"] < 120


def test_the_fine_tune_knows_where_it_comes_from(
    hub: HubClient, trained: dict[str, Any], tiny: dict[str, Any], dataset: dict[str, Any]
) -> None:
    model = hub.call("GET", f"/api/v1/models/{trained['result_model_id']}")
    assert model["state"] == "ready"
    assert model["base_model_id"] == tiny["id"]
    assert model["training_job_id"] == trained["id"]
    lineage = hub.call("GET", f"/api/v1/models/{model['id']}/lineage")
    kinds = {(node["kind"], node["id"]) for node in lineage["nodes"]}
    wanted = {("model", tiny["id"]), ("dataset", dataset["id"]), ("job", trained["id"])}
    assert wanted <= kinds


def test_it_chats_with_base_and_fine_tune(
    hub: HubClient, trained: dict[str, Any], tiny: dict[str, Any]
) -> None:
    model = hub.call("GET", f"/api/v1/models/{trained['result_model_id']}")
    messages = [{"role": "user", "content": "Row 3: what is 1 plus 2?"}]
    answers = [hub.answer(slug, messages) for slug in (tiny["slug"], model["slug"])]
    assert answers[0] != answers[1]
    assert hub.answer(model["slug"], messages) == answers[1], "greedy answers repeat"


def test_a_conversation_streams_and_is_kept(hub: HubClient, tiny: dict[str, Any]) -> None:
    made = hub.call("POST", "/api/v1/conversations", {"model_id": tiny["id"]})
    path = f"/api/v1/conversations/{made['id']}"
    body = {"content": "Hello", "params": {"max_tokens": 12, "temperature": 0}}
    with hub.http.stream("POST", f"{path}/messages", json=body) as answer:
        events = list(sse(answer))
    assert answer.status_code == 200
    assert events[-1][0] == "done"
    text = "".join(data["text"] for name, data in events if name == "token")
    kept = hub.call("GET", path)["messages"]
    assert [message["role"] for message in kept] == ["user", "assistant"]
    assert kept[1]["content"] == text
    assert kept[1]["usage"]["completion_tokens"] == events[-1][1]["usage"]["completion_tokens"]


def sse(answer: httpx.Response) -> Any:
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_it_is_evaluated(
    hub: HubClient, trained: dict[str, Any], tiny: dict[str, Any], dataset: dict[str, Any]
) -> None:
    values = []
    for model_id in (tiny["id"], trained["result_model_id"]):
        made = hub.call(
            "POST", "/api/v1/evaluations", {"model_id": model_id, "dataset_id": dataset["id"]}
        )
        found = hub.finish(f"/api/v1/evaluations/{made['id']}", seconds=120)
        values.append(found["metrics"]["perplexity"])
    assert values[1]["value"] < values[0]["value"]
    assert values[0]["better"] == "lower"
    assert values[0]["stderr"] > 0


def test_the_export_that_the_job_named_follows_it(
    hub: HubClient, trained: dict[str, Any], tmp_path: Path
) -> None:
    exports = hub.call("GET", f"/api/v1/models/{trained['result_model_id']}/exports")["items"]
    assert [export["format"] for export in exports] == ["gguf"]
    found = hub.finish(f"/api/v1/exports/{exports[0]['id']}", seconds=180)
    file = next(file for file in found["files"] if file["path"].endswith(".gguf"))
    target = tmp_path / "model.gguf"
    hub.download(f"/api/v1/exports/{found['id']}/download?path={file['path']}", target)
    assert target.stat().st_size == file["size"]
    assert target.read_bytes()[:4] == b"GGUF"
    assert found["parity"]["compared_tokens"] > 0


def test_a_running_job_is_cancelled(
    hub: HubClient, tiny: dict[str, Any], dataset: dict[str, Any]
) -> None:
    job = hub.call(
        "POST",
        "/api/v1/training-jobs",
        {
            "dataset_id": dataset["id"],
            "model_id": tiny["id"],
            "config": {**CONFIG, "max_steps": 100_000, "eval_steps": 50_000, "save_steps": 50_000},
        },
    )
    path = f"/api/v1/training-jobs/{job['id']}"
    hub.call("POST", f"{path}/start")
    hub.wait(path, lambda row: (row["progress"]["step"] or 0) >= 2, seconds=120)
    hub.call("POST", f"{path}/cancel")
    found = hub.wait(path, lambda row: row["status"] == "cancelled", seconds=60)
    assert found["failure"] is None or found["failure"]["reason"] == "cancelled"
    hub.wait("/api/v1/workers/summary", lambda row: row["idle"] >= 1, seconds=30)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"lora_rr": 4}, "lora_r"),
        ({"max_seq_length": 100_000}, "context"),
        ({"learning_rate": -1}, "above 0"),
    ],
)
def test_a_bad_config_is_refused_at_its_field(
    hub: HubClient,
    tiny: dict[str, Any],
    dataset: dict[str, Any],
    config: dict[str, Any],
    says: str,
) -> None:
    body = {"dataset_id": dataset["id"], "model_id": tiny["id"], "config": config}
    answer = hub.http.post("/api/v1/training-jobs", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert says in problem["detail"]
    assert problem["errors"][0]["loc"][0] == "config"


def test_rows_that_are_all_masked_fail_with_advice(
    appliance: Appliance, hub: HubClient, tiny: dict[str, Any]
) -> None:
    rows = [
        {
            "messages": [
                {"role": "user", "content": "x " * 400},
                {"role": "assistant", "content": "y"},
            ]
        }
        for _ in range(8)
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    long = hub.upload_dataset("Too long", "long.jsonl", content)
    body = {"dataset_id": long["id"], "model_id": tiny["id"], "config": {**CONFIG, "max_steps": 1}}
    job = hub.call("POST", "/api/v1/training-jobs", body)
    path = f"/api/v1/training-jobs/{job['id']}"
    hub.call("POST", f"{path}/start")
    found = hub.wait(path, lambda row: row["status"] == "failed", seconds=120)
    assert found["failure"]["reason"] == "bad_data"
    assert "max_seq_length" in found["failure"]["message"] + found["failure"]["advice"]
