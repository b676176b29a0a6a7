"""What `parsyn doctor` examines: one agent's folder, its settings, its way to the hub."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import httpx

from parsyn.errors import ParsynError
from parsyn_worker import probe, runtime
from parsyn_worker.address import HubAddress
from parsyn_worker.config import ENV_FILE, AgentConfig, load_config, read_env

SECONDS = 10.0


@dataclass(frozen=True)
class Health:
    """The hub's answer to `/health`, or why there is none. Times since the epoch, in seconds."""

    error: str | None = None
    status: int = 0
    body: dict[str, object] | None = None
    date: str | None = None
    asked_at: float = 0.0
    answered_at: float = 0.0


class Patient:
    """Everything is looked up once, at its first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()

    @cached_property
    def _loaded(self) -> tuple[AgentConfig | None, str | None]:
        try:
            return load_config(self.folder), None
        except ParsynError as error:
            return None, error.detail

    @property
    def config(self) -> AgentConfig | None:
        """The settings; None where they are not complete."""
        return self._loaded[0]

    @property
    def error(self) -> str | None:
        return self._loaded[1]

    @property
    def settings(self) -> AgentConfig:
        assert self.config is not None
        return self.config

    @property
    def hub(self) -> HubAddress:
        return self.settings.hub

    @cached_property
    def device(self) -> str:
        """What is set, else what an agent would take."""
        if self.config is not None:
            return self.config.device or probe.default_device()
        return os.environ.get("GPU_DEVICE", "").strip() or probe.default_device()

    @cached_property
    def file(self) -> dict[str, str]:
        """The variables of `.env`; none where it cannot be read."""
        try:
            return read_env(self.folder / ENV_FILE)
        except ParsynError:
            return {}

    @cached_property
    def cache(self) -> Path:
        if self.config is not None:
            return self.config.cache_dir.absolute()
        return Path(
            os.environ.get("CACHE_DIR") or self.file.get("CACHE_DIR") or "~/.cache/parsyn"
        ).expanduser()

    @cached_property
    def runtime(self) -> runtime.Runtime:
        return runtime.find(self.cache)

    @cached_property
    def health(self) -> Health:
        url = f"{self.hub.http}/health"
        asked = time.time()
        try:
            answer = httpx.get(url, timeout=SECONDS)
        except httpx.HTTPError as error:
            return Health(error=f"{url} does not answer ({error})")
        answered = time.time()
        try:
            body = answer.json()
        except ValueError:
            body = None
        return Health(
            status=answer.status_code,
            body=body if isinstance(body, dict) and "status" in body else None,
            date=answer.headers.get("Date"),
            asked_at=asked,
            answered_at=answered,
        )
