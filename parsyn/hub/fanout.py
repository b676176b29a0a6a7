"""From events to the dashboards that watch their topic; a slow one never holds up the others."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from typing import Any

from parsyn.wire.events import EventType

WAITING_LIMIT = 1000


class Watcher:
    """One dashboard's socket: its topics, and what waits to be sent.

    A topic that a client names may stand for several inside (`fleet`: one a project).
    """

    def __init__(self) -> None:
        self.topics: dict[str, frozenset[str]] = {}
        self.closing: tuple[int, str] | None = None
        self._waiting: deque[str] = deque()
        self._ready, self._ending = asyncio.Event(), asyncio.Event()
        self._seq = 0

    def put(self, body: str) -> bool:
        """Queue an event (a JSON object without `seq`); False when too many wait."""
        if len(self._waiting) >= WAITING_LIMIT:
            return False
        self._seq += 1
        self._waiting.append(f'{{"seq":{self._seq},{body[1:]}')
        self._ready.set()
        return True

    def say(self, type: EventType, topic: str | None, data: dict[str, Any]) -> None:
        """An event for this client alone."""
        self.put(event_body(type, topic, data))

    def start_over(self) -> None:
        """It was too slow: what waits is dropped and the client told to subscribe again."""
        self._waiting.clear()
        self.topics.clear()
        self.say(EventType.RESUBSCRIBE, None, {})

    def close(self, code: int, reason: str) -> None:
        self.closing = self.closing or (code, reason)
        self._ready.set()
        self._ending.set()

    async def pause(self, seconds: float) -> None:
        """Wait so long, but no longer once the socket is to be closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def take(self) -> list[str]:
        """What waits; nothing when the socket is to be closed."""
        await self._ready.wait()
        self._ready.clear()
        batch = list(self._waiting)
        self._waiting.clear()
        return batch


def frame(events: list[str]) -> str:
    """What travels at once: an event as it is, several as a JSON array."""
    return events[0] if len(events) == 1 else f"[{','.join(events)}]"


def event_body(type: str, topic: str | None, data: dict[str, Any]) -> str:
    shown = {"type": str(type), "topic": topic, "data": data}
    return json.dumps(shown, separators=(",", ":"), allow_nan=False)


class Fanout:
    """Lives on the event loop of one hub process."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[Watcher, str]] = {}
        self._watchers: set[Watcher] = set()

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    # --- who watches --------------------------------------------------------------------------

    def add(self, watcher: Watcher) -> None:
        self._watchers.add(watcher)

    def remove(self, watcher: Watcher) -> None:
        for shown in list(watcher.topics):
            self.unsubscribe(watcher, shown)
        self._watchers.discard(watcher)

    def subscribe(self, watcher: Watcher, shown: str, inner: frozenset[str]) -> None:
        """Let `watcher` hear of `inner` topics, under the name `shown`."""
        self.unsubscribe(watcher, shown)
        watcher.topics[shown] = inner
        for topic in inner:
            self._by_topic.setdefault(topic, {})[watcher] = shown

    def unsubscribe(self, watcher: Watcher, shown: str) -> None:
        for topic in watcher.topics.pop(shown, frozenset()):
            self._forget(watcher, topic)

    def _forget(self, watcher: Watcher, topic: str) -> None:
        watchers = self._by_topic.get(topic, {})
        watchers.pop(watcher, None)
        if not watchers:
            self._by_topic.pop(topic, None)

    def close_all(self, code: int, reason: str) -> None:
        for watcher in self._watchers:
            watcher.close(code, reason)

    def start_all_over(self) -> None:
        """Events were missed: every dashboard is told to subscribe again."""
        for watcher in list(self._watchers):
            self._start_over(watcher)

    # --- what they hear -----------------------------------------------------------------------

    def pass_on(self, type: str, topic: str, data: dict[str, Any]) -> None:
        """Give an event to whoever watches its topic."""
        bodies: dict[str, str] = {}
        for watcher, shown in list(self._by_topic.get(topic, {}).items()):
            if shown not in bodies:
                bodies[shown] = event_body(type, shown, data)
            if not watcher.put(bodies[shown]):
                self._start_over(watcher)

    def _start_over(self, watcher: Watcher) -> None:
        for subscribed in list(watcher.topics):
            self.unsubscribe(watcher, subscribed)
        watcher.start_over()
