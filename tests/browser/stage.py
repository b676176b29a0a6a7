"""What the pages show when they are walked: data, a model, runs that went well and badly."""

from __future__ import annotations

import json
from typing import Any

from parsyn.demo.client import HubClient
from tests.browser.conftest import rows_jsonl

CONFIG = {
    "max_steps": 12,
    "batch_size": 4,
    "gradient_accumulation_steps": 1,
    "learning_rate": 5e-3,
    "max_seq_length": 128,
    "eval_steps": 4,
    "save_steps": 4,
    "sample_tokens": 8,
}
JOBS = "/api/v1/training-jobs"


def masked_jsonl() -> bytes:
    """Rows whose answers begin after the longest sequence: a run on them fails at once."""
    rows = [
        [{"role": "user", "content": "x " * 400}, {"role": "assistant", "content": "y"}]
        for _ in range(8)
    ]
    return "\n".join(json.dumps({"messages": row}) for row in rows).encode()


def broken_jsonl() -> bytes:
    """Good rows and a few that cannot be used."""
    lines = rows_jsonl(100).decode().splitlines()
    lines[3] = "{not json"
    lines[7] = json.dumps({"messages": []})
    lines[11] = json.dumps({"messages": [{"role": "user", "content": ""}]})
    return ("\n".join(lines) + "\n").encode()


def run_job(
    hub: HubClient, dataset: dict[str, Any], model: dict[str, Any], **changes: Any
) -> dict[str, Any]:
    """A job that was started and has ended, well or not."""
    body = {
        "name": f"{model['name']} on {dataset['name']}",
        "dataset_id": dataset["id"],
        "model_id": model["id"],
        "config": {**CONFIG, **changes},
    }
    job = hub.call("POST", JOBS, body)
    hub.call("POST", f"{JOBS}/{job['id']}/start")
    over = ("completed", "failed", "cancelled")
    return hub.wait(f"{JOBS}/{job['id']}", lambda row: row["status"] in over, seconds=240)


def completed_job(hub: HubClient, model: dict[str, Any]) -> dict[str, Any]:
    """The last run that went well, or a new one."""
    done = [job for job in hub.pages(JOBS) if job["status"] == "completed"]
    if done:
        return done[-1]
    data = hub.upload_dataset("Sums", "sums.jsonl", rows_jsonl(120))
    job = run_job(hub, data, model)
    assert job["status"] == "completed", job["failure"]
    return job


def failed_job(hub: HubClient, model: dict[str, Any]) -> dict[str, Any]:
    data = hub.upload_dataset("Too long", "long.jsonl", masked_jsonl())
    job = run_job(hub, data, model, max_steps=1)
    assert job["status"] == "failed"
    return job


def conversation(hub: HubClient, model_id: int) -> dict[str, Any]:
    """A question with its answer."""
    made: dict[str, Any] = hub.call("POST", "/api/v1/conversations", {"model_id": model_id})
    body = {"content": "What is 3 plus 4?", "params": {"max_tokens": 24, "temperature": 0}}
    path = f"/api/v1/conversations/{made['id']}/messages"
    with hub.http.stream("POST", path, json=body) as answer:
        answer.read()
    assert answer.status_code == 200
    return made
