"""The same steps through the whole appliance: hub, agent, socket, metrics and all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.appliance import Appliance


@contextmanager
def appliance(
    work: Path, model: Path, rows: Path, batch: int
) -> Iterator[Callable[[int], list[float]]]:
    """A function that runs a job of so many steps and answers with the seconds of each."""
    running = Appliance(work / "data", agent=True)
    running.create_owner()
    running.start()
    try:
        client = running.client()
        made = running.import_model(model, "Bench")
        lines = "".join(json.dumps(row) + "\n" for row in json.loads(rows.read_text()))
        dataset = client.upload_dataset("Bench", "bench.jsonl", lines.encode())
        client.wait("/api/v1/workers/summary", lambda row: row["online"] >= 1, seconds=60)
        yield lambda steps: _job(client, made["id"], dataset["id"], batch, steps)
    finally:
        running.stop()


def _job(client: Any, model: Any, dataset: Any, batch: int, steps: int) -> list[float]:
    config = {
        "max_steps": steps + 1,
        "batch_size": batch,
        "gradient_accumulation_steps": 1,
        "validation_split": 0,
        "save_steps": steps + 1,
        "sample_prompts": 0,
    }
    body = {"dataset_id": dataset, "model_id": model, "config": config}
    path = f"/api/v1/training-jobs/{client.call('POST', '/api/v1/training-jobs', body)['id']}"
    client.call("POST", f"{path}/start")
    client.finish(path, seconds=900)
    series = client.call("GET", f"{path}/metrics")["series"]["loss"]
    # From one step's report to the next: everything that happens in between counts.
    times = [at for _, at, _ in series]
    return [after - before for before, after in itertools.pairwise(times)]
