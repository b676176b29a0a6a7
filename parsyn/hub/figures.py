"""What `/metrics` answers: figures of this process, and of the hub as its database knows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import redis
from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from parsyn import __version__
from parsyn.hub.broker import Broker
from parsyn.hub.fanout import Fanout
from parsyn.hub.hub import Hub
from parsyn.services import figures, tally
from parsyn.services.figures import Figures
from parsyn.services.tally import Counted

FRESH_SECONDS = 1.0
LAG_SECONDS = 0.5
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
HELP = {
    Counted.LOST: "Attempts whose agent was given up.",
    Counted.REQUEUED: "Attempts that were followed by another one by themselves.",
    Counted.REFUSED: "Offers that an agent refused or did not answer.",
}


def figures_of(hub: Hub) -> HubFigures:
    """Those of a hub process, made at the first call."""
    if "figures" not in hub.parts:
        hub.parts["figures"] = HubFigures(hub)
    return cast("HubFigures", hub.parts["figures"])


class HubFigures(Collector):
    """Lives on the event loop; counting costs a microsecond, asking a few short queries."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = asyncio.Lock()
        self._answer: tuple[float, bytes] = (0.0, b"")
        self._now = Figures()
        self._rq: tuple[int, int] | None = None
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = self._histogram(
            "parsyn_request_seconds", "Until an answer began.", ("method", "route", "status")
        )
        self.dispatch = self._histogram(
            "parsyn_dispatch_seconds", "From what may make a task fit until it was offered."
        )
        self.accept = self._histogram(
            "parsyn_accept_seconds", "From an offer until the agent took it on."
        )
        self.lag = self._histogram(
            "parsyn_event_loop_lag_seconds", "How much later than it asked a timer was woken."
        )
        self.lag_now = Gauge(
            "parsyn_event_loop_lag_last_seconds", "The last one.", registry=self.registry
        )
        self.registry.register(self)

    def _histogram(self, name: str, text: str, labels: Iterable[str] = ()) -> Histogram:
        return Histogram(name, text, tuple(labels), buckets=QUICK, registry=self.registry)

    async def run(self) -> None:
        """Watch the event loop until cancelled."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(LAG_SECONDS)
            late = max(0.0, time.monotonic() - began - LAG_SECONDS)
            self.lag.observe(late)
            self.lag_now.set(late)

    async def text(self) -> bytes:
        """The answer, at most a second old, so that many who ask cost no more than one."""
        async with self._lock:
            at, known = self._answer
            if not known or time.monotonic() - at > FRESH_SECONDS:
                context = self._hub.context
                self._now = await context.database.read(figures.figures)
                self._rq = await asyncio.to_thread(self._ask_rq)
                known = generate_latest(self.registry)
                self._answer = (time.monotonic(), known)
            return known

    def _ask_rq(self) -> tuple[int, int] | None:
        """(waiting, failed) hub-side jobs; None where Redis does not answer."""
        queue = self._hub.context.queue
        try:
            return int(queue.rq.count), int(queue.rq.failed_job_registry.count)
        except redis.RedisError:
            return None

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        now, parts = self._now, self._hub.parts
        yield _gauge("parsyn_info", "The version that runs.", {(__version__,): 1}, ["version"])
        yield _gauge(
            "parsyn_workers", "Workers by status.",
            {(status,): n for status, n in now.workers.items()}, ["status"],
        )  # fmt: skip
        yield _gauge("parsyn_jobs", "Jobs by kind and status.", now.jobs, ["kind", "status"])
        yield _gauge("parsyn_queue_length", "Tasks that wait for an agent.", {(): now.queued})
        yield _gauge(
            "parsyn_queue_oldest_seconds", "How long the oldest waits.", {(): now.oldest_wait}
        )
        yield _gauge("parsyn_tasks_running", "Tasks that agents work on.", {(): now.running})
        yield _gauge(
            "parsyn_tasks_unreachable", "Those whose agent is silent.", {(): now.unreachable}
        )
        yield _gauge("parsyn_outbox_backlog", "Effects still to be delivered.", {(): now.outbox})
        yield _gauge(
            "parsyn_outbox_oldest_seconds", "How long the oldest waits.", {(): now.oldest_effect}
        )
        yield _gauge("parsyn_hub_processes", "Hub processes that live.", {(): now.processes})
        sockets = {
            ("worker",): len(cast("Broker", parts["broker"]).connections()),
            ("dashboard",): cast("Fanout", parts["fanout"]).watchers,
        }
        yield _gauge("parsyn_websockets", "Open sockets of this process.", sockets, ["kind"])
        if self._rq is not None:
            states = {("waiting",): self._rq[0], ("failed",): self._rq[1]}
            yield _gauge("parsyn_background_jobs", "Hub-side jobs in Redis.", states, ["state"])
        up = {(): 0 if self._rq is None else 1}
        yield _gauge("parsyn_redis_up", "Whether Redis answers.", up)
        rows = self._hub.context.metrics.rows_written
        yield _counter("parsyn_metric_rows", "Rows of metrics and logs that were stored.", rows)
        for what, count in tally.counts().items():
            yield _counter(what, HELP[what], count)


def _gauge(
    name: str, text: str, values: Mapping[Any, float], labels: list[str] | None = None
) -> GaugeMetricFamily:
    """`values` by the values of the labels."""
    family = GaugeMetricFamily(name, text, labels=labels or [])
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)
