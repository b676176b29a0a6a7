"""One hub process, and how a request finds it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, cast

from quart import current_app, g

from parsyn.hub.endpoint import Endpoint
from parsyn.services.context import Context
from parsyn.services.principal import Principal

log = logging.getLogger(__name__)


@dataclass
class Hub:
    """One hub process: its context, and what lives on its event loop."""

    context: Context
    endpoints: list[Endpoint] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    parts: dict[str, Any] = field(default_factory=dict)

    def spawn(self, coroutine: Any, name: str) -> asyncio.Task[Any]:
        """Run in the background until it ends or the hub stops; a failure is logged."""
        task = asyncio.create_task(coroutine, name=name)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s failed", task.get_name(), exc_info=task.exception())


def hub() -> Hub:
    """The hub of the current request."""
    return cast("Hub", current_app.extensions["parsyn"])


def principal() -> Principal:
    """Who asks; only inside a route that is not public."""
    return cast("Principal", g.principal)
