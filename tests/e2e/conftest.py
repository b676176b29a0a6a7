"""A whole appliance with a local agent and a tiny model, one for all tests of this folder."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsyn.demo.client import HubClient
from tests.appliance import Appliance
from tests.tiny_model import make_in_child

SHARED = Path(os.environ.get("PARSYN_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_in_child(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    running = Appliance(tmp_path_factory.mktemp("appliance") / "data", agent=True)
    running.create_owner()
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def hub(appliance: Appliance) -> HubClient:
    return appliance.client()


@pytest.fixture(scope="session")
def tiny(appliance: Appliance, hub: HubClient, tiny_folder: Path) -> dict[str, Any]:
    """The tiny model as the hub knows it; its worker is online."""
    made = appliance.import_model(tiny_folder, "Tiny")
    hub.wait("/api/v1/workers/summary", lambda row: row["online"] >= 1, seconds=60)
    found: dict[str, Any] = hub.call("GET", f"/api/v1/models/{made['id']}")
    return found


@pytest.fixture(scope="session")
def dataset(hub: HubClient) -> dict[str, Any]:
    return hub.upload_dataset("Numbers", "numbers.jsonl", rows_jsonl(120))


def rows_jsonl(count: int, seed: int = 0) -> bytes:
    """Short question-and-answer rows in the `messages` shape."""
    pick = random.Random(seed)
    rows = []
    for n in range(count):
        a, b = pick.randrange(100), pick.randrange(100)
        rows.append(
            {
                "messages": [
                    {"role": "user", "content": f"Row {n}: what is {a} plus {b}?"},
                    {"role": "assistant", "content": f"{a} plus {b} is {a + b}."},
                ]
            }
        )
    return ("\n".join(json.dumps(row) for row in rows) + "\n").encode()
