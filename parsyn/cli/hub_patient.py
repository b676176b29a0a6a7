"""What the hub's `parsyn doctor` examines: settings, and each part opened at its first use."""

from __future__ import annotations

import fcntl
from functools import cached_property
from pathlib import Path

import httpx
import redis

from parsyn.cli.locks import HUB_LOCK
from parsyn.cli.options import embedded_redis
from parsyn.config import Settings
from parsyn.store.database import Database

SECONDS = 5.0


class HubPatient:
    """Parts are opened apart from one another, so that one that fails hides none."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def data(self) -> Path:
        return self.settings.data_dir

    @cached_property
    def pid(self) -> str | None:
        """The process of a hub that runs on this data directory; it is looked at, not disturbed."""
        try:
            with (self.data / HUB_LOCK).open("r") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return file.read().strip() or "unknown"
        except OSError:
            return None
        return None

    @property
    def database_is_file(self) -> bool:
        return self.settings.text("hub.database") == "sqlite"

    @cached_property
    def database(self) -> Database:
        """Not migrated. Raises ParsynError where its address is none."""
        return Database(self.settings.text("hub.database"), self.data)

    @cached_property
    def redis_url(self) -> str | None:
        """`hub.redis`, or the embedded one's while a hub runs."""
        return self.settings.text("hub.redis") or embedded_redis(self.settings)

    @cached_property
    def redis(self) -> redis.Redis:
        assert self.redis_url is not None
        return redis.Redis.from_url(
            self.redis_url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS
        )

    def health(self, base: str) -> httpx.Response:
        """Raises httpx.HTTPError."""
        return httpx.get(f"{base}/health", timeout=SECONDS)

    def close(self) -> None:
        if "database" in self.__dict__:
            self.database.close()
        if "redis" in self.__dict__:
            self.redis.close()
