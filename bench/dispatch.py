"""From a job's submission to its start on an idle agent, and how many jobs a second that makes.

One at a time: the time from the request that starts a job to the offer's arrival at an agent, and
to the job's being seen as running on a dashboard. Many at once: jobs that reach an agent a second.
Once with a few connected agents, once with a thousand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.crowd import Agent, Ledger, in_groups
from bench.raw_http import RawHttp
from bench.raw_socket import open_socket
from bench.stage import HubProcess, World, cores, make_world, quantile, report, serving

DEADLINE = 20.0
CLIENTS = 8
BROKEN = {"reason": "user_error", "message": "Only a benchmark."}


class Yard:
    """The agents and a dashboard: when each job was offered, when it was seen running."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.agents = [Agent(key, Ledger()) for key in world.worker_keys]
        self.offered: dict[int, asyncio.Future[float]] = {}
        self.running: dict[int, asyncio.Future[float]] = {}
        for agent in self.agents:
            agent.on_offer = self._offered

    async def open(self, port: int) -> None:
        await in_groups([agent.connect(port) for agent in self.agents], 50)
        self._watched: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.dashboard = await open_socket(port, "/ws/dashboard", {}, self._text, lambda *_: None)
        self._say({"type": "authenticate", "token": self.world.api_key})
        self._say({"type": "subscribe", "topics": [f"project:{self.world.project_id}"]})
        await self._watched

    def close(self) -> None:
        self.dashboard.close()
        for agent in self.agents:
            if agent.socket is not None:
                agent.socket.close()

    def expect(self, job_id: int) -> tuple[asyncio.Future[float], asyncio.Future[float]]:
        loop = asyncio.get_running_loop()
        self.offered[job_id], self.running[job_id] = loop.create_future(), loop.create_future()
        return self.offered[job_id], self.running[job_id]

    def _offered(self, agent: Agent, offer: dict[str, Any]) -> None:
        self.offered[offer["job_id"]].set_result(agent.offered_at)
        # Done at once, in a way that nobody retries: the agent is idle again.
        agent.say("result", task_id=offer["task_id"], attempt=offer["attempt"], seq=1, at=1.5,
                  outcome="failed", failure=BROKEN)  # fmt: skip
        agent.task = None

    def _say(self, message: dict[str, Any]) -> None:
        self.dashboard.send(json.dumps(message).encode())

    def _text(self, body: bytes) -> None:
        at = time.perf_counter()
        found = json.loads(body)
        for event in found if isinstance(found, list) else [found]:
            data = event["data"]
            if event["type"] == "snapshot":
                self._watched.set_result(None)
            elif event["type"] == "job.state" and data["status"] == "running":
                waiting = self.running.get(data["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(at)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--agents", type=int, nargs="+", default=[10, 1000])
    options.add_argument("--jobs", type=int, default=200)
    given = options.parse_args()
    hub_core, own_core = cores()
    for agents in given.agents:
        with tempfile.TemporaryDirectory(prefix="parsyn-bench-") as work:
            data = Path(work) / "data"
            world = make_world(data, workers=agents, jobs=0)
            with serving(data, core=hub_core) as hub:
                if own_core is not None:
                    os.sched_setaffinity(0, {own_core})
                asyncio.run(measure(hub, world, given.jobs))
        os.sched_setaffinity(0, {core for core in (hub_core, own_core) if core is not None} or {0})
    return 0


async def measure(hub: HubProcess, world: World, jobs: int) -> None:
    label = f"dispatch to {len(world.worker_keys)} agents"
    yard = Yard(world)
    await yard.open(hub.port)
    clients = [RawHttp(hub.port, world.api_key) for _ in range(CLIENTS)]
    for client in clients:
        await client.open()
    await one_by_one(yard, clients[0], await created(clients[0], world, 10))
    before = hub.cpu_seconds()
    offered, running = await one_by_one(yard, clients[0], await created(clients[0], world, jobs))
    report(label, "submitted to offered, p50", 1000 * quantile(offered, 0.5), "ms", 20)
    report(label, "submitted to offered, p99", 1000 * quantile(offered, 0.99), "ms", 100)
    report(label, "submitted to seen running, p50", 1000 * quantile(running, 0.5), "ms")
    report(label, "submitted to seen running, p99", 1000 * quantile(running, 0.99), "ms")
    report(label, "hub CPU for one job", 1000 * (hub.cpu_seconds() - before) / jobs, "ms")
    seconds = await at_once(yard, clients, await created(clients[0], world, jobs))
    report(label, "many at once", jobs / seconds, "jobs/s")
    for client in clients:
        client.close()
    yard.close()


async def created(client: RawHttp, world: World, count: int) -> list[int]:
    body = {"model_id": world.model_id, "dataset_id": world.dataset_id}
    return [(await client.post("/api/v1/training-jobs", body))["id"] for _ in range(count)]


async def one_by_one(
    yard: Yard, client: RawHttp, jobs: list[int]
) -> tuple[list[float], list[float]]:
    """Seconds from the request to the offer, and to the dashboard's seeing it run."""
    offers, runs = [], []
    for job in jobs:
        offered, running = yard.expect(job)
        began = time.perf_counter()
        async with asyncio.timeout(DEADLINE):
            await client.post(f"/api/v1/training-jobs/{job}/start")
            offers.append(await offered - began)
            runs.append(await running - began)
        # What follows a job (its end, its agent's return) is not part of the next one's time.
        await asyncio.sleep(0.05)
    return offers, runs


async def at_once(yard: Yard, clients: list[RawHttp], jobs: list[int]) -> float:
    """Seconds until the last of them is offered."""
    waiting = [yard.expect(job)[0] for job in jobs]
    left = list(jobs)

    async def submit(client: RawHttp) -> None:
        while left:
            await client.post(f"/api/v1/training-jobs/{left.pop()}/start")

    began = time.perf_counter()
    await asyncio.gather(*(submit(client) for client in clients))
    async with asyncio.timeout(5 * DEADLINE):
        return max(await asyncio.gather(*waiting)) - began


if __name__ == "__main__":
    sys.exit(main())
