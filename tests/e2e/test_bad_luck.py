"""The hub or the agent is killed while a job runs; the job completes, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.e2e.conftest import rows_jsonl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
LEASES = {
    "PARSYN_LEASES_HEARTBEAT_SECONDS": "0.5",
    "PARSYN_LEASES_OFFLINE_SECONDS": "20",
    "PARSYN_LEASES_UNREACHABLE_SECONDS": "60",
    "PARSYN_LEASES_BOOT_GRACE_SECONDS": "5",
}
CONFIG = {
    "max_steps": 60,
    "batch_size": 2,
    "gradient_accumulation_steps": 1,
    "max_seq_length": 128,
    "eval_steps": 20,
    "save_steps": 10,
}


class Agent:
    """An agent set up and started by the commands that a person would use."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "CACHE_DIR": str(cache), "RECONNECT_DELAY": "1"}

    def run(self, *arguments: str, stdin: str = "") -> str:
        result = subprocess.run(
            [sys.executable, "-m", "parsyn.cli.main", *arguments, "--dir", str(self.folder)],
            input=stdin, text=True, capture_output=True, env=self.env, timeout=60, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    def init(self, url: str, key: str) -> None:
        self.run("init", "--url", url, "--key-stdin", "--non-interactive", stdin=f"{key}\n")

    def pid(self) -> int:
        import json

        return int(json.loads(self.run("status", "--json"))["pid"])

    def kill(self) -> None:
        os.kill(self.pid(), signal.SIGKILL)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Appliance]:
    running = Appliance(tmp_path / "data", env=LEASES)
    running.create_owner()
    running.start()
    yield running
    running.stop()


@pytest.fixture
def agent(tmp_path: Path, hub: Appliance) -> Iterator[Agent]:
    client = hub.client()
    key = client.call("POST", "/api/v1/master-keys", {"name": "lab", "auto_name_prefix": "lab"})
    made = Agent(tmp_path / "agent", tmp_path / "cache")
    made.init(hub.url, key["key"])
    made.run("start")
    client.wait("/api/v1/workers/summary", lambda row: row["online"] == 1, seconds=60)
    yield made
    subprocess.run(
        [sys.executable, "-m", "parsyn.cli.main", "stop", "--dir", str(made.folder)],
        env=made.env, check=False, capture_output=True,
    )  # fmt: skip


def start_job(hub: Appliance, client: HubClient, tiny_folder: Path) -> str:
    model = hub.import_model(tiny_folder, "Tiny")
    dataset = client.upload_dataset("Numbers", "numbers.jsonl", rows_jsonl(120))
    body = {"dataset_id": dataset["id"], "model_id": model["id"], "config": CONFIG}
    job = client.call("POST", "/api/v1/training-jobs", body)
    path = f"/api/v1/training-jobs/{job['id']}"
    client.call("POST", f"{path}/start")
    return path


def check_complete(client: HubClient, found: dict[str, Any], path: str) -> None:
    steps = [step for step, _, _ in client.call("GET", f"{path}/metrics")["series"]["loss"]]
    assert steps == list(range(1, 61)), "no step is lost and none is doubled"
    models = [m for m in client.pages("/api/v1/models") if m["training_job_id"] == found["id"]]
    assert len(models) == 1


def test_the_hub_is_killed_and_the_agent_goes_on(
    hub: Appliance, agent: Agent, tiny_folder: Path
) -> None:
    client = hub.client()
    path = start_job(hub, client, tiny_folder)
    client.wait(path, lambda row: (row["progress"]["step"] or 0) >= 5, seconds=120)
    hub.kill()
    hub.start()
    client = hub.client()
    found = client.finish(path, seconds=280)
    assert found["attempt"] == 1, "the same attempt went on through the outage"
    check_complete(client, found, path)


def test_the_agent_is_killed_and_the_job_resumes_from_its_checkpoint(
    hub: Appliance, agent: Agent, tiny_folder: Path
) -> None:
    client = hub.client()
    path = start_job(hub, client, tiny_folder)
    client.wait(
        f"{path}/checkpoints",
        lambda page: any(point["step"] >= 10 for point in page["items"]),
        seconds=120,
    )
    agent.kill()
    agent.run("start")
    found = client.finish(path, seconds=280)
    assert found["attempt"] == 2
    check_complete(client, found, path)
    causes = [event["cause"] for event in client.call("GET", f"{path}/events")["items"]]
    assert any("checkpoint" in cause for cause in causes)
    again = client.call("POST", f"{path}/duplicate", {})
    whole = f"/api/v1/training-jobs/{again['id']}"
    client.call("POST", f"{whole}/start")
    assert client.finish(whole, seconds=280)["attempt"] == 1
    assert adapter_of(client, path) == adapter_of(client, whole), "bit for bit the same run"


def adapter_of(client: HubClient, path: str) -> str:
    """The SHA-256 of the weights that a training left."""
    page = client.call("GET", f"{path}/artifacts")
    found = {item["path"]: item["sha256"] for item in page["items"]}
    return str(found["adapter_model.safetensors"])
