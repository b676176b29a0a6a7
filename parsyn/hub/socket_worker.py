"""`/ws/worker`: the agents' sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Quart

if TYPE_CHECKING:
    from parsyn.hub.app import Hub


def mount(app: Quart, hub: Hub) -> None:
    """Serve the agents' sockets, and put the broker where other rooms find it."""
