"""`/ws/dashboard`: what browsers watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Quart

if TYPE_CHECKING:
    from parsyn.hub.app import Hub


def mount(app: Quart, hub: Hub) -> None:
    """Serve the browsers' sockets."""
