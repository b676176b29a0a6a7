"""What starts and stops with a hub process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, cast

from quart import Quart

from parsyn.hub.broker import Broker
from parsyn.hub.collector import Collector
from parsyn.hub.conversing import conversing
from parsyn.hub.dispatcher import Dispatcher
from parsyn.hub.fanout import Fanout
from parsyn.hub.figures import figures_of
from parsyn.hub.fleet import Fleet
from parsyn.hub.hub import Hub
from parsyn.hub.members import Members
from parsyn.hub.progress import ProgressBook
from parsyn.hub.reconciler import Reconciler
from parsyn.hub.relay import Relay
from parsyn.pubsub import GAP_TOPIC, OWN_TOPIC
from parsyn.services.signals import ANSWERS, SCHEDULER
from parsyn.wire.events import EventType
from parsyn.wire.worker import CloseCode

log = logging.getLogger(__name__)
GOODBYE_SECONDS = 3.0


def mount(app: Quart, hub: Hub) -> None:
    """Start the hub's background work with the application and stop it with it."""
    life = Lifecycle(hub)
    hub.parts["lifecycle"] = life
    app.before_serving(life.start)
    app.after_serving(life.stop)


class Lifecycle:
    def __init__(self, hub: Hub) -> None:
        self.hub, self.context = hub, hub.context
        self.broker = cast("Broker", hub.parts["broker"])
        self.progress = cast("ProgressBook", hub.parts["progress"])
        self.fleet = cast("Fleet", hub.parts["fleet"])
        self.fanout = cast("Fanout", hub.parts["fanout"])
        self.members = cast("Members", hub.parts["members"])
        self.relay = cast("Relay", hub.parts["relay"])
        self.figures = figures_of(hub)
        self.dispatcher = Dispatcher(self.context)
        self.dispatcher.on_offered = self.figures.dispatch.observe
        self.reconciler = Reconciler(self.context)
        self.collector = Collector(self.broker)

    async def start(self) -> None:
        self.context.metrics.start()
        self.hub.spawn(self.context.bus.listen(self.heed), "events")
        await self.members.join()
        parts = (self.progress, self.fleet, self.members, self.dispatcher, self.reconciler)
        for part in (*parts, self.figures, self.collector):
            self.hub.spawn(part.run(), type(part).__name__)
        self.dispatcher.wake()

    def heed(self, type: str, topic: str, data: dict[str, Any]) -> None:
        """Every event and signal of all processes comes by here, on the event loop."""
        try:
            self._heed(type, topic, data)
        except Exception:
            log.exception("an event on %s could not be handled", topic)

    def _heed(self, type: str, topic: str, data: dict[str, Any]) -> None:
        if topic == SCHEDULER:
            self.dispatcher.wake()
        elif topic == OWN_TOPIC:
            self.relay.heed(type, data)
        elif topic == GAP_TOPIC:
            self._catch_up()
        elif topic == ANSWERS:
            conversing(self.hub).stop_here(data["conversation_id"])
        elif topic.startswith("worker:"):
            self.broker.heed(type, topic, data)
        else:
            if type == EventType.WORKER_STATE:
                self.broker.notice(data)
            self.fanout.pass_on(type, topic, data)

    def _catch_up(self) -> None:
        """What other processes said for a while was not heard here."""
        self.relay.lost_touch()
        self.fanout.start_all_over()
        self.dispatcher.wake()

    async def drain(self) -> None:
        """Close every socket with the reason; called before the server stops listening."""
        self.broker.close_all(CloseCode.SERVICE_RESTART, "The hub is restarting.")
        self.fanout.close_all(int(CloseCode.SERVICE_RESTART), "The hub is restarting.")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.broker.emptied()

    async def stop(self) -> None:
        await self.drain()
        await self.progress.store()
        await self.fleet.store()
        with contextlib.suppress(Exception):
            await self.members.leave()
        running = set(self.hub.tasks)
        while running:
            for task in running:
                task.cancel()
            # The Redis client swallows a cancellation that comes while it connects.
            _, running = await asyncio.wait(running, timeout=0.02)
