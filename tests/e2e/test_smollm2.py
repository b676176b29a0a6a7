"""A few real steps on the real SmolLM2-135M-Instruct, with a real row set."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.demo.client import HubClient
from parsyn.demo.smollm2 import prepare_smollm2
from parsyn.demo.story import sample_rows
from tests.appliance import Appliance

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def smollm2(appliance: Appliance, hub: HubClient, tiny: dict[str, Any]) -> dict[str, Any]:
    made = appliance.import_model(prepare_smollm2(), "SmolLM2-135M-Instruct")
    found: dict[str, Any] = hub.call("GET", f"/api/v1/models/{made['id']}")
    return found


def test_the_import_knows_the_model(smollm2: dict[str, Any]) -> None:
    assert smollm2["architecture"] == "LlamaForCausalLM"
    assert smollm2["parameters"] == 134_515_008
    assert smollm2["context_length"] == 8192
    assert "<|im_start|>" in smollm2["chat_template"]


def test_it_learns(hub: HubClient, smollm2: dict[str, Any]) -> None:
    training, _ = sample_rows()
    dataset = hub.upload_dataset("Support", "support.jsonl", training)
    body = {
        "dataset_id": dataset["id"],
        "model_id": smollm2["id"],
        "config": {"max_steps": 6, "batch_size": 4, "learning_rate": 1e-3, "max_seq_length": 128,
                   "gradient_accumulation_steps": 1, "validation_split": 0},
    }  # fmt: skip
    job = hub.call("POST", "/api/v1/training-jobs", body)
    path = f"/api/v1/training-jobs/{job['id']}"
    hub.call("POST", f"{path}/start")
    found = hub.finish(path, seconds=280)
    losses = [value for _, _, value in hub.call("GET", f"{path}/metrics")["series"]["loss"]]
    assert len(losses) == 6
    assert sum(losses[-2:]) < sum(losses[:2])
    model = hub.call("GET", f"/api/v1/models/{found['result_model_id']}")
    question = [{"role": "user", "content": "What is the capital of France?"}]
    assert hub.answer(smollm2["slug"], question) == "The capital of France is Paris."
    assert hub.answer(model["slug"], question)
