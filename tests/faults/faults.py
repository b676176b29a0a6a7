"""What may go wrong, each with a duration after which that one is over; a seed draws from them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.faults.liars import impersonate
from tests.faults.virtual import Process

if TYPE_CHECKING:
    from tests.faults.agent_process import AgentProcess
    from tests.faults.case import Case
    from tests.faults.hub_process import HubProcess

SPAN = 100.0
"""Faults begin within so many seconds."""
DURATIONS = (0.5, 3.0, 10.0, 25.0, 45.0, 90.0)
"""Some shorter than the leases (22.5 s and 15 s more), some longer."""

NEVER = 1e9

Strike = Callable[["Case", "Fault"], Awaitable[None]]


@dataclass
class Fault:
    """One stroke of bad luck. `dice` are its own numbers, 0..1."""

    name: str
    strike: Strike
    at: float
    seconds: float
    dice: list[float] = field(default_factory=list)

    @property
    def harmless(self) -> bool:
        return self.seconds < HARMLESS[self.name]

    def __str__(self) -> str:
        return f"{self.name} for {self.seconds:g} s"


REPERTOIRE: dict[str, tuple[int, Strike]] = {}
HARMLESS: dict[str, float] = {}
"""Faults that must not cost an attempt when they are shorter than so many seconds."""


def fault(weight: int, harmless_below: float = 0.0) -> Callable[[Strike], Strike]:
    def register(strike: Strike) -> Strike:
        name = getattr(strike, "__name__", "").replace("_", " ")
        REPERTOIRE[name], HARMLESS[name] = (weight, strike), harmless_below
        return strike

    return register


def draw(luck: random.Random) -> list[Fault]:
    """One to seven faults."""
    names = list(REPERTOIRE)
    weights = [REPERTOIRE[name][0] for name in names]
    return [
        Fault(
            name,
            REPERTOIRE[name][1],
            luck.uniform(0, SPAN),
            luck.choice(DURATIONS) * luck.uniform(0.7, 1.3),
            [luck.random() for _ in range(4)],
        )
        for name in luck.choices(names, weights, k=luck.randint(1, 7))
    ]


def _hub(case: Case, fault: Fault) -> HubProcess:
    return case.hubs[int(fault.dice[0] * len(case.hubs))]


def _agent(case: Case, fault: Fault) -> AgentProcess:
    return case.agents[int(fault.dice[0] * len(case.agents))]


# --- the hub and what it stands on ------------------------------------------------------------


@fault(4, harmless_below=NEVER)
async def hub_killed(case: Case, fault: Fault) -> None:
    hub = _hub(case, fault)
    hub.kill()
    case.network.link(case.agents[0].name).refusing = 502 if fault.dice[1] < 0.5 else None
    await asyncio.sleep(fault.seconds)
    if not hub.process.alive:
        await hub.start()


@fault(2, harmless_below=NEVER)
async def hub_restarted(case: Case, fault: Fault) -> None:
    hub = _hub(case, fault)
    await hub.shut_down()
    await asyncio.sleep(fault.seconds)
    if not hub.process.alive:
        await hub.start()


@fault(2, harmless_below=10)
async def hub_stopped(case: Case, fault: Fault) -> None:
    """SIGSTOP and SIGCONT, or a laptop's lid."""
    process = _hub(case, fault).process
    process.stop()
    await asyncio.sleep(fault.seconds)
    process.go_on()


HUB_POINTS = (
    "commit.before", "commit.after", "metrics.before", "metrics.after", "object.before",
    "object.stored", "object.recorded", "manifest.checkpoint", "manifest.result", "outbox.write",
    "ack.before", "ack.after",
)  # fmt: skip


@fault(10, harmless_below=NEVER)
async def hub_dies_at_a_point(case: Case, fault: Fault) -> None:
    hub = _hub(case, fault)
    point = HUB_POINTS[int(fault.dice[1] * len(HUB_POINTS))]
    hub.process.points[point] = 1 + int(fault.dice[2] * (40 if "commit" in point else 5))
    case.tell(f"  at {point}:{hub.process.points[point]}")
    before = hub.process
    for _ in range(80):
        if not before.alive:
            case.tell(f"  {hub.name} died at {point}")
            await asyncio.sleep(fault.seconds)
            break
        await asyncio.sleep(1.0)
    if not hub.process.alive:
        await hub.start()


@fault(2, harmless_below=NEVER)
async def jobs_die_at_a_point(case: Case, fault: Fault) -> None:
    points = ("job.before", "job.after", "outbox.before", "outbox.effect", "outbox.after")
    process = case.jobs.process
    process.points[points[int(fault.dice[1] * len(points))]] = 1 + int(fault.dice[2] * 4)
    await asyncio.sleep(fault.seconds)
    if not case.jobs.process.alive:
        case.jobs.start()


@fault(1, harmless_below=NEVER)
async def redis_flushed(case: Case, _: Fault) -> None:
    case.redis.flush()


@fault(1, harmless_below=NEVER)
async def redis_down(case: Case, fault: Fault) -> None:
    case.redis.flush()
    case.redis.down = True
    await asyncio.sleep(fault.seconds)
    case.redis.down = False


@fault(2, harmless_below=10)
async def database_away(case: Case, fault: Fault) -> None:
    case.troubles.database_away = True
    await asyncio.sleep(fault.seconds)
    case.troubles.database_away = False


@fault(1, harmless_below=NEVER)
async def storage_full(case: Case, fault: Fault) -> None:
    case.troubles.disk_full = True
    await asyncio.sleep(fault.seconds)
    case.troubles.disk_full = False


@fault(1, harmless_below=NEVER)
async def hub_clock_jumps(case: Case, fault: Fault) -> None:
    _hub(case, fault).process.skew += (fault.dice[1] - 0.5) * 7200


# --- agents -----------------------------------------------------------------------------------


@fault(4)
async def agent_killed(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    agent.kill()
    await asyncio.sleep(fault.seconds)
    agent.start()


@fault(4)
async def agent_is_gone_for_good(case: Case, fault: Fault) -> None:
    """Another one has to take over: it will not say what it had still to say."""
    left = [agent for agent in case.agents if agent.name not in case.person.removed]
    if len(left) > 1 and len(case.gone) == 0:
        agent = left[int(fault.dice[0] * len(left))]
        case.gone.add(agent.name)
        agent.vanish() if fault.dice[1] < 0.5 else agent.kill()


@fault(2)
async def agent_loses_power(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    agent.vanish()
    await asyncio.sleep(fault.seconds)
    agent.start()


@fault(2)
async def agent_restarted(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    agent.shut_down()
    await asyncio.sleep(fault.seconds + 15)
    agent.start()


@fault(4, harmless_below=10)
async def agent_stopped(case: Case, fault: Fault) -> None:
    process = _agent(case, fault).process
    process.stop()
    await asyncio.sleep(fault.seconds)
    process.go_on()


AGENT_POINTS = (
    "offer.noted", "offer.accepted", "handover.before", "handover.after", "upload.before",
    "upload.after", "spool.before", "spool.after", "spool.heard", "spool.forgotten", "key.before",
    "key.after",
)  # fmt: skip


@fault(8)
async def agent_dies_at_a_point(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    point = AGENT_POINTS[int(fault.dice[1] * len(AGENT_POINTS))]
    count = 1 + int(fault.dice[2] * (60 if "spool" in point else 5))
    agent.process.points[point] = count
    case.tell(f"  {agent.name} at {point}:{count}")
    before = agent.process
    for _ in range(80):
        if not before.alive:
            case.tell(f"  {agent.name} died at {point}")
            await asyncio.sleep(fault.seconds)
            break
        await asyncio.sleep(1.0)
    agent.start()


@fault(3)
async def task_dies_at_a_point(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    point = "checkpoint.before" if fault.dice[1] < 0.5 else "checkpoint.after"
    points = {point: 1 + int(fault.dice[2] * 3)}
    if agent.children:
        agent.children[0].own.points.update(points)
    else:
        agent.task_points = points


@fault(1, harmless_below=NEVER)
async def agent_disk_full(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    agent.disk_full = True
    await asyncio.sleep(fault.seconds)
    agent.disk_full = False


@fault(1, harmless_below=NEVER)
async def agent_clock_jumps(case: Case, fault: Fault) -> None:
    _agent(case, fault).process.skew += (fault.dice[1] - 0.5) * 7200


@fault(1)
async def worker_removed(case: Case, fault: Fault) -> None:
    names = [agent.name for agent in case.agents if agent.name in case.furniture.workers]
    if len(names) - len(case.person.removed | case.gone) > 1:
        await case.person.remove(names[int(fault.dice[0] * len(names))])


@fault(1, harmless_below=NEVER)
async def two_agents_with_one_key(case: Case, fault: Fault) -> None:
    """A copied folder: the second one knows the key, and nothing of the tasks."""
    agent = _agent(case, fault)
    if not agent.key.startswith("wkr_"):
        return
    twin = Process(agent.name)
    case.loop.begin(twin, impersonate(case, agent.key, instance="a twin"))
    await asyncio.sleep(fault.seconds)
    twin.kill()


@fault(2, harmless_below=NEVER)
async def worker_drained(case: Case, fault: Fault) -> None:
    names = [agent.name for agent in case.agents if agent.name in case.furniture.workers]
    worker_id, _ = case.furniture.workers[names[0]]
    await case.person.ask("POST", f"/workers/{worker_id}/drain")
    await asyncio.sleep(fault.seconds)
    await case.person.ask("POST", f"/workers/{worker_id}/resume")


# --- the network ------------------------------------------------------------------------------


@fault(4, harmless_below=10)
async def link_cut(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    link = case.network.link(agent.name)
    link.cut = True
    case.network.cut(agent.name)
    await asyncio.sleep(fault.seconds)
    link.cut = False
    case.network.flush()


@fault(5, harmless_below=10)
async def link_half_open(case: Case, fault: Fault) -> None:
    link = case.network.link(_agent(case, fault).name)
    link.holds_up = fault.dice[1] < 0.7
    link.holds_down = fault.dice[1] > 0.3
    await asyncio.sleep(fault.seconds)
    link.holds_up = link.holds_down = False
    case.network.flush()


@fault(2, harmless_below=10)
async def link_slow(case: Case, fault: Fault) -> None:
    link = case.network.link(_agent(case, fault).name)
    link.delay = 1 + 8 * fault.dice[1]
    await asyncio.sleep(fault.seconds)
    link.delay = 0.0


@fault(3, harmless_below=10)
async def link_flaps(case: Case, fault: Fault) -> None:
    agent = _agent(case, fault)
    end = case.loop.time() + fault.seconds
    while case.loop.time() < end:
        case.network.cut(agent.name)
        await asyncio.sleep(1 + 4 * fault.dice[1])


@fault(2, harmless_below=NEVER)
async def frames_come_twice(case: Case, fault: Fault) -> None:
    link = case.network.link(_agent(case, fault).name)
    link.twice = 0.3
    await asyncio.sleep(fault.seconds)
    link.twice = 0.0


@fault(3, harmless_below=NEVER)
async def http_breaks(case: Case, fault: Fault) -> None:
    link = case.network.link(_agent(case, fault).name)
    link.loses = 0.6
    await asyncio.sleep(fault.seconds)
    link.loses = 0.0


@fault(1, harmless_below=NEVER)
async def http_breaks_for_the_user(case: Case, fault: Fault) -> None:
    link = case.network.link("person")
    link.loses = 0.5
    await asyncio.sleep(fault.seconds)
    link.loses = 0.0


@fault(2, harmless_below=NEVER)
async def proxy_cuts_what_is_idle(case: Case, fault: Fault) -> None:
    link = case.network.link(_agent(case, fault).name)
    link.idle = 3 + 10 * fault.dice[1]
    await asyncio.sleep(fault.seconds)
    link.idle = None


# --- liars ------------------------------------------------------------------------------------


@fault(8, harmless_below=NEVER)
async def a_liar(case: Case, fault: Fault) -> None:
    """A registered worker that claims every task there is, whatever the attempt."""
    _, key = case.furniture.workers["eve"]
    liar = Process("liar")
    case.loop.begin(liar, impersonate(case, key, instance="liar", lies=True))
    await asyncio.sleep(fault.seconds + 20)
    liar.kill()
