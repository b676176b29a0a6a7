"""Does watching a job slow it down? Its tokens a second with dashboards watching, and with none.

One real job through the whole appliance; segments with and without dashboards alternate while it
runs, so that both meet the same machine. Every row has the same length, so tokens a second are
steps a second. What the hub process uses more of a core while it is watched is reported too: that
figure holds on a busy machine, where the ratio does not. The dashboards watch the fleet, the
project and the job, as the web UI does; their own work is on this machine too and counts against
the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.crowd import Dashboard, Ledger, in_groups
from bench.stage import cpu_seconds, quantile, report
from parsyn.demo.client import HubClient
from parsyn.demo.smollm2 import prepare_smollm2
from parsyn.wire.states import Scope
from tests.appliance import Appliance

LENGTH, BATCH = 128, 2
WARM_UP_STEPS = 3
Segment = tuple[float, float, bool, float]
Report = tuple[int, float]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", type=Path, help="A model folder; default: SmolLM2.")
    options.add_argument("--dashboards", type=int, default=20)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--seconds", type=float, default=15.0, help="Of one segment.")
    given = options.parse_args()
    folder = given.model or prepare_smollm2()
    # So that the appliance is stopped too when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="parsyn-bench-") as work:
        running = Appliance(Path(work) / "data", agent=True)
        running.create_owner()
        running.start()
        try:
            segments, reports = watched(running, folder, given)
        finally:
            running.stop()
    tell(segments, reports, given.dashboards)
    return 0


def watched(running: Appliance, folder: Path, given: Any) -> tuple[list[Segment], list[Report]]:
    """The segments, and (step, time) of each report of the job."""
    client = running.client()
    key = client.call("POST", "/api/v1/api-keys", {"name": "bench", "scopes": list(Scope)})["key"]
    job = start(client, running, folder)
    path = f"/api/v1/training-jobs/{job['id']}"
    client.wait(path, lambda row: (row["progress"]["step"] or 0) > WARM_UP_STEPS, seconds=300)
    topics = ("fleet", f"project:{job['project_id']}", f"job:{job['id']}")
    segments = asyncio.run(alternate(running, key, topics, given))
    losses = client.call("GET", f"{path}/metrics")["series"]["loss"]
    client.call("POST", f"{path}/cancel")
    client.wait(path, lambda row: row["status"] == "cancelled", seconds=60)
    return segments, [(step, at) for step, at, _ in losses]


def start(client: HubClient, running: Appliance, folder: Path) -> dict[str, Any]:
    order = random.Random(0)
    rows = []
    for _ in range(256):
        ids = [order.randrange(10, 200) for _ in range(LENGTH)]
        rows.append(json.dumps({"input_ids": ids, "labels": ids}))
    dataset = client.upload_dataset("Dense", "dense.jsonl", "\n".join(rows).encode())
    model = running.import_model(folder, "Bench")
    client.wait("/api/v1/workers/summary", lambda row: row["online"] >= 1, seconds=60)
    config = {
        "epochs": 1000, "batch_size": BATCH, "gradient_accumulation_steps": 1,
        "validation_split": 0, "save_steps": 100_000, "sample_prompts": 0, "logging_steps": 1,
    }  # fmt: skip
    body = {"dataset_id": dataset["id"], "model_id": model["id"], "config": config}
    job: dict[str, Any] = client.call("POST", "/api/v1/training-jobs", body)
    client.call("POST", f"/api/v1/training-jobs/{job['id']}/start")
    return job


async def alternate(
    running: Appliance, key: str, topics: tuple[str, ...], given: Any
) -> list[Segment]:
    """(beginning, end, whether it was watched, the hub's CPU seconds) of each segment."""
    pid = running.process.pid
    segments = []
    for number in range(2 * given.pairs):
        is_watched = number % 4 in (0, 3)
        dashboards = [
            Dashboard(Ledger(), topics) for _ in range(given.dashboards if is_watched else 0)
        ]
        await in_groups([one.connect(running.port, key) for one in dashboards], 5)
        # Snapshots are over now; which of a pair comes first alternates.
        began, cpu = time.time(), cpu_seconds(pid)
        await asyncio.sleep(given.seconds)
        segments.append((began, time.time(), is_watched, cpu_seconds(pid) - cpu))
        for one in dashboards:
            one.socket.close()
    return segments


def tell(segments: list[Segment], reports: list[Report], dashboards: int) -> None:
    speeds = [speed(segment, reports) for segment in segments]
    pairs = list(zip(segments[::2], speeds[::2], speeds[1::2], strict=True))
    ratios = [(a / b) if first[2] else (b / a) for first, a, b in pairs]
    watched = [s for s, (_, _, was, _) in zip(speeds, segments, strict=True) if was]
    alone = [s for s, (_, _, was, _) in zip(speeds, segments, strict=True) if not was]
    report("watching", "dashboards", dashboards, "dashboards")
    report("watching", "watched", quantile(watched, 0.5), "tokens/s")
    report("watching", "not watched", quantile(alone, 0.5), "tokens/s")
    report("watching", "watched/not watched", quantile(ratios, 0.5), "ratio", 0.98)
    report("watching", "hub CPU more while watched", share(segments, True) - share(segments, False),
           "cores")  # fmt: skip
    report("watching", "lowest pair", min(ratios), "ratio")
    report("watching", "highest pair", max(ratios), "ratio")


def share(segments: list[Segment], watched: bool) -> float:
    """Of a core that the hub used in the segments of one kind."""
    chosen = [segment for segment in segments if segment[2] == watched]
    return sum(cpu for *_, cpu in chosen) / sum(ended - began for began, ended, *_ in chosen)


def speed(segment: Segment, reports: list[Report]) -> float:
    """Tokens a second between the first and the last report within a segment."""
    began, ended, _, _ = segment
    inside = [(step, at) for step, at in reports if began <= at <= ended]
    if len(inside) < 2:
        return float("nan")
    (first, since), (last, until) = inside[0], inside[-1]
    return LENGTH * BATCH * (last - first) / (until - since)


if __name__ == "__main__":
    sys.exit(main())
