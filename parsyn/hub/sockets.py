"""A socket whose peer cannot send faster than the hub takes."""

from __future__ import annotations

import asyncio

from hypercorn.typing import WebsocketScope
from quart import Quart
from quart.asgi import ASGIWebsocketConnection

FRAMES = 256


class BoundedSocket(ASGIWebsocketConnection):
    """Quart's own queue of received frames has no end; with this one the peer's TCP waits."""

    def __init__(self, app: Quart, scope: WebsocketScope) -> None:
        super().__init__(app, scope)
        self.queue = asyncio.Queue(FRAMES)
