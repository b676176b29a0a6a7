"""Keeps the pauses of Python's garbage collector short while many workers are connected.

A full collection looks at every object that lives: with a thousand workers 150 ms, in which nothing
else runs. What connections are made of lives as long as they do, so it is set aside (`gc.freeze`)
once they have come; what is left to look at is little. Cycles that were set aside are looked for
once an hour, and when many connections have gone.
"""

from __future__ import annotations

import asyncio
import gc
import time

from parsyn.hub.broker import Broker

LOOK_SECONDS = 2.0
MANY = 50
THOROUGH_SECONDS = 3600.0


class Collector:
    """Only for the event loop's thread; `run` looks until it is cancelled."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._connected = 0
        self._thorough_at = time.monotonic()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look(time.monotonic())

    def look(self, at: float) -> None:
        """Set aside what came, or look through all; `at` in seconds of the monotonic clock."""
        connected = len(self._broker.connections())
        many_came = connected - self._connected >= MANY
        many_left = self._connected - connected >= MANY
        is_due = self._connected > 0 and at - self._thorough_at >= THOROUGH_SECONDS
        if many_left or is_due:
            gc.unfreeze()
            gc.collect()
            self._thorough_at = at
        elif not many_came:
            return
        gc.freeze()
        self._connected = connected
