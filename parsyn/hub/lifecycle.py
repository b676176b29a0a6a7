"""What starts and stops with a hub process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import Quart

if TYPE_CHECKING:
    from parsyn.hub.app import Hub


def mount(app: Quart, hub: Hub) -> None:
    """Start the hub's background work with the application and stop it with it."""

    @app.before_serving
    async def start() -> None:
        hub.context.metrics.start()

    @app.after_serving
    async def stop() -> None:
        for task in list(hub.tasks):
            task.cancel()
