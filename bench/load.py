"""A thousand agents and fifty dashboards on one hub process that has one core.

The agents speak the real protocol over real sockets: a heartbeat every 24 s, system metrics every
5 s, and a share of them runs a task that sends a metric and a state every second and a line of
log every five. The dashboards watch what the web UI watches: the fleet, the project, one job. The
simulator has the other core; how late it is itself is reported beside the hub's figures.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import sys
import time
from array import array
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.crowd import (
    LOG,
    METRIC,
    Agent,
    Dashboard,
    Lag,
    Ledger,
    Rota,
    in_groups,
)
from bench.stage import (
    HubProcess,
    World,
    cores,
    database,
    make_world,
    quantile,
    report,
    serving,
)
from parsyn.store.metrics import connect_postgres

JOBS_WATCHED = 25


@dataclass
class Window:
    """What was measured between two moments."""

    first: int
    last: int
    seconds: float
    hub_cpu: float
    own_cpu: float


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--agents", type=int, default=1000)
    options.add_argument("--dashboards", type=int, default=50)
    options.add_argument("--working", type=int, default=100, help="Agents that run a task.")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--settle", type=float, default=3.0, help="Seconds before and after.")
    options.add_argument("--server", default="", help="The ASGI server; default: the hub's own.")
    options.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    given = options.parse_args()
    hub_core, own_core = cores()
    with database(given.database) as (url, work):
        data = work / "data"
        world = make_world(data, workers=given.agents, jobs=given.working, database=url)
        env = {"PARSYN_HUB_DATABASE": url}
        if given.server:
            env["PARSYN_HUB_SERVER"] = given.server
        with serving(data, core=hub_core, **env) as hub:
            if own_core is not None:
                os.sched_setaffinity(0, {own_core})
            sent = asyncio.run(measure(hub, world, given))
        report(label_of(given), "reports not stored", sent - rows_stored(url, data), "reports", 0)
    return 0


def label_of(given: Any) -> str:
    on = " and ".join(name for name in (given.server, given.database) if name and name != "sqlite")
    return f"load on {on}" if on else "load"


def rows_stored(url: str, data: Path) -> int:
    """Metric points (of one name) and lines of log that the hub has stored, after its end."""
    on_sqlite = url == "sqlite"
    connection: Any = sqlite3.connect(data / "metrics.db") if on_sqlite else connect_postgres(url)
    points = connection.execute("SELECT count(*) FROM metric_points WHERE name = 'loss'")
    lines = connection.execute("SELECT count(*) FROM log_lines")
    counts = points.fetchone()[0], lines.fetchone()[0]
    connection.close()
    return sum(counts)


async def measure(hub: HubProcess, world: World, given: Any) -> int:
    """Put the load on, tell what came of it; how many reports should have been stored."""
    ledger = Ledger()
    agents = [Agent(key, ledger) for key in world.worker_keys]
    began = time.monotonic()
    await in_groups([agent.connect(hub.port) for agent in agents], 50)
    arriving = time.monotonic() - began
    await until_working(agents, given.working)
    dashboards = [Dashboard(ledger, topics(world, n)) for n in range(given.dashboards)]
    await in_groups([one.connect(hub.port, world.api_key) for one in dashboards], 5)
    rota = work_of(agents)
    lag = Lag()
    loops = [asyncio.create_task(lag.run()), asyncio.create_task(rota.run())]
    await asyncio.sleep(given.settle)
    lag.late.clear()
    window = await watch(hub, ledger, dashboards, given)
    late = list(lag.late)
    for loop in loops:
        loop.cancel()
    await settle(agents, given.settle)
    tell(given, hub, window, dashboards, agents, late, arriving)
    for socket in [*agents, *dashboards]:
        if socket.socket is not None:
            socket.socket.close()
    return sum(kind in (METRIC, LOG) for kind in ledger.kind)


async def until_working(agents: list[Agent], count: int) -> None:
    async with asyncio.timeout(120):
        while sum(agent.task is not None for agent in agents) < count:
            await asyncio.sleep(0.05)


def topics(world: World, number: int) -> tuple[str, ...]:
    watched = world.job_ids[:JOBS_WATCHED]
    job = (f"job:{watched[number % len(watched)]}",) if watched else ()
    return ("fleet", f"project:{world.project_id}", *job)


def work_of(agents: list[Agent]) -> Rota:
    rota = Rota()
    rota.add(24.0, [agent.beat for agent in agents])
    rota.add(5.0, [agent.measure for agent in agents])
    working = [agent for agent in agents if agent.task is not None]
    rota.add(1.0, [agent.metric for agent in working])
    rota.add(1.0, [agent.state for agent in working])
    rota.add(5.0, [agent.log for agent in working])
    return rota


async def watch(hub: HubProcess, ledger: Ledger, dashboards: list[Dashboard], given: Any) -> Window:
    for dashboard in dashboards:
        dashboard.counting = True
    # Reports that were under way when the counting began may have been seen already.
    await asyncio.sleep(given.settle)
    first, began = len(ledger), time.monotonic()
    for dashboard in dashboards:
        dashboard.delays = array("d")
        dashboard.frames = dashboard.bytes = 0
    hub_cpu, own_cpu = hub.cpu_seconds(), time.process_time()
    await asyncio.sleep(given.seconds)
    return Window(
        first=first,
        last=len(ledger),
        seconds=time.monotonic() - began,
        hub_cpu=hub.cpu_seconds() - hub_cpu,
        own_cpu=time.process_time() - own_cpu,
    )


async def settle(agents: list[Agent], seconds: float) -> None:
    """Until everything is acknowledged and passed on, ten seconds at most."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(agent.unacknowledged for agent in agents):
        await asyncio.sleep(0.1)
    await asyncio.sleep(seconds)


def tell(
    given: Any,
    hub: HubProcess,
    window: Window,
    dashboards: list[Dashboard],
    agents: list[Agent],
    late: list[float],
    arriving: float,
) -> None:
    label = label_of(given)
    delays = list(chain.from_iterable(dashboard.delays for dashboard in dashboards))
    missing = [dashboard.missing(window.first, window.last) for dashboard in dashboards]
    gone = sum(len(socket.closed) for socket in [*agents, *dashboards])
    report(label, "agents", len(agents), "agents")
    report(label, "dashboards", len(dashboards), "dashboards")
    report(label, "all connected after", arriving, "s")
    report(label, "reports", (window.last - window.first) / window.seconds, "1/s")
    report(label, "events seen", len(delays) / window.seconds, "1/s")
    report(label, "frames sent", sum(d.frames for d in dashboards) / window.seconds, "1/s")
    report(label, "disconnects", gone, "sockets", 0)
    report(label, "told to start over", sum(d.told_to_start_over for d in dashboards), "times", 0)
    report(label, "events lost", sum(lost for lost, _ in missing), "events", 0)
    report(label, "events doubled", sum(doubled for _, doubled in missing), "events", 0)
    left = sum(len(agent.unacknowledged) for agent in agents)
    report(label, "reports not acknowledged", left, "reports", 0)
    report(label, "tasks dropped", sum(agent.stale for agent in agents), "tasks", 0)
    report(label, "sent to seen, p50", quantile(delays, 0.5), "s", 0.6)
    report(label, "sent to seen, p99", quantile(delays, 0.99), "s", 1.5)
    report(label, "hub CPU", window.hub_cpu / window.seconds, "cores", 0.6)
    report(label, "hub memory, peak", hub.memory_mb(), "MB", 400)
    report(label, "simulator CPU", window.own_cpu / window.seconds, "cores")
    report(label, "simulator late, p99", quantile(late, 0.99), "s")


if __name__ == "__main__":
    sys.exit(main())
