"""`kill -9` of a hub with a thousand agents: when are they all back, and was anything requeued?

The agents wait between their tries as the real ones do (with their own code), and hold on to the
tasks that they run. The hub is started again at once, as a supervisor would.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "worker")]

from bench.crowd import Agent, Ledger, Rota, in_groups  # noqa: E402
from bench.stage import HubProcess, cores, make_world, quantile, report, serving  # noqa: E402
from parsyn_worker.backoff import Backoff  # noqa: E402

RECONNECT_DELAY = 5.0
LONGEST_SECONDS = 120.0
WELCOME_SECONDS = 20.0


class Returning(Agent):
    """Comes back by itself; `back_at` is when the hub welcomed it again."""

    back_at = 0.0

    async def come_back(self, port: int) -> None:
        backoff = Backoff(RECONNECT_DELAY)
        while True:
            await asyncio.sleep(backoff.wait(time.monotonic()))
            try:
                async with asyncio.timeout(WELCOME_SECONDS):
                    await self.connect(port)
            except OSError:
                continue
            self.back_at = time.monotonic()
            return


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--agents", type=int, default=1000)
    options.add_argument("--working", type=int, default=100, help="Agents that run a task.")
    options.add_argument("--settle", type=float, default=3.0, help="Seconds before and after.")
    given = options.parse_args()
    hub_core, own_core = cores()
    with tempfile.TemporaryDirectory(prefix="parsyn-bench-") as work:
        data = Path(work) / "data"
        world = make_world(data, workers=given.agents, jobs=given.working)
        agents = [Returning(key, Ledger()) for key in world.worker_keys]
        with serving(data, core=hub_core) as hub:
            if own_core is not None:
                os.sched_setaffinity(0, {own_core})
            asyncio.run(storm(hub, agents, given.working, given.settle))
        attempts, states = tasks(data)
        report("storm", "tasks requeued", sum(attempt > 1 for attempt in attempts), "tasks", 0)
        running = sum(state == "running" for state in states)
        report("storm", "tasks not running", given.working - running, "tasks", 0)
    return 0


def tasks(data: Path) -> tuple[list[int], list[str]]:
    with sqlite3.connect(data / "parsyn.db") as connection:
        rows = connection.execute("SELECT attempt, status FROM tasks").fetchall()
    return [int(row[0]) for row in rows], [str(row[1]) for row in rows]


async def storm(hub: HubProcess, agents: list[Returning], working: int, settle: float) -> None:
    await in_groups([agent.connect(hub.port) for agent in agents], 50)
    async with asyncio.timeout(120):
        while sum(agent.task is not None for agent in agents) < working:
            await asyncio.sleep(0.05)
    rota = Rota()
    rota.add(5.0, [agent.measure for agent in agents])
    rota.add(24.0, [agent.beat for agent in agents])
    rota.add(1.0, [agent.metric for agent in agents if agent.task])
    rota.add(1.0, [agent.state for agent in agents if agent.task])
    working_loop = asyncio.create_task(rota.run())
    await asyncio.sleep(settle)
    killed = time.monotonic()
    hub.kill()
    returning = [asyncio.create_task(agent.come_back(hub.port)) for agent in agents]
    starting = await asyncio.to_thread(hub.start)
    cpu = hub.cpu_seconds()
    await asyncio.wait(returning, timeout=LONGEST_SECONDS)
    cpu = hub.cpu_seconds() - cpu
    # Long enough for the hub to notice a task that an agent no longer names.
    await asyncio.sleep(settle)
    working_loop.cancel()
    tell(agents, killed, starting, cpu)
    for agent in agents:
        if agent.socket is not None:
            agent.socket.close()


def tell(agents: list[Returning], killed: float, starting: float, cpu: float) -> None:
    back = [agent.back_at - killed for agent in agents if agent.back_at]
    report("storm", "agents", len(agents), "agents")
    report("storm", "hub up again after", starting, "s")
    report("storm", "half are back after", quantile(back, 0.5), "s")
    report("storm", "all are back after", max(back, default=0.0), "s", 30)
    report("storm", "not back", len(agents) - len(back), "agents", 0)
    report("storm", "tasks dropped", sum(agent.stale for agent in agents), "tasks", 0)
    report("storm", "hub CPU for one return", 1000 * cpu / max(1, len(back)), "ms")


if __name__ == "__main__":
    sys.exit(main())
