"""The agent's hold on its inference child: started on the first order, given back when idle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from parsyn_worker.child import Child, Stream
from parsyn_worker.config import AgentConfig
from parsyn_worker.environment import child_device, child_environment
from parsyn_worker.events import InferSettings
from parsyn_worker.vram import VramCap

log = logging.getLogger(__name__)


class Inferer:
    """`on_line` gets each event of the child, `on_end` its exit status and last error lines."""

    def __init__(
        self,
        config: AgentConfig,
        device: str,
        vram_cap: VramCap,
        on_line: Callable[[bytes], Awaitable[None]],
        on_end: Callable[[int, list[str]], None],
    ) -> None:
        self.config, self.device, self.vram_cap = config, device, vram_cap
        self.on_line, self.on_end = on_line, on_end
        self._child: Child | None = None
        self._follower: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.process.returncode is None

    async def send(self, order: BaseModel) -> None:
        """Start the child where there is none. Raises ConnectionError when it is dying."""
        async with self._starting:
            if not self.alive:
                await self._start()
            assert self._child is not None
            await self._child.send(order.model_dump_json().encode())

    async def close(self) -> None:
        async with self._starting:
            await self._end()

    async def _start(self) -> None:
        await self._end()
        settings = InferSettings.model_validate(
            {
                "device": child_device(self.device),
                "quantization": self.config.quantization,
                "trust_remote_code": self.config.trust_remote_code,
                "max_models": self.config.max_cached_models,
            }
        )
        env = {**child_environment(self.device), **self.vram_cap.environment()}
        self._child = await Child.start("parsyn_worker.infer", env, self._line)
        self._follower = asyncio.create_task(self._follow(self._child))
        await self._child.send(settings.model_dump_json().encode())

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            child.kill()
        if self._follower:
            await asyncio.gather(self._follower, return_exceptions=True)
            self._follower = None

    async def _follow(self, child: Child) -> None:
        status: Any = None
        try:
            async for line in child.events():
                await self.on_line(line)
        finally:
            status = await child.close()
            if child is self._child:
                last = child.tail[-1] if child.tail else "it said nothing"
                log.error("The inference child died (status %d): %s", status, last)
            self.on_end(status, list(child.tail))

    def _line(self, stream: Stream, text: str) -> None:
        log.debug("infer, %s: %s", stream, text)
