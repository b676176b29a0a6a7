"""What every service function may need, made once a process."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parsyn.config import Settings
from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.manager import Plugins
from parsyn.plugin.params import parse_params
from parsyn.plugin.storage import Storage
from parsyn.pubsub import Bus
from parsyn.queue import JobQueue
from parsyn.store.database import Database, after_commit
from parsyn.store.metrics import MetricsStore
from parsyn.wire.events import EventType


@dataclass
class Context:
    """Settings, plugins and stores of this process. `secret` signs tickets."""

    settings: Settings
    database: Database
    metrics: MetricsStore
    plugins: Plugins
    storage: Storage
    queue: JobQueue
    bus: Bus
    secret: bytes

    def publish(self, type: EventType, topic: str, data: dict[str, Any]) -> None:
        """Publish once the surrounding transaction has committed."""
        after_commit(lambda: self.bus.publish(type, topic, data))

    def enqueue(self, function: str, *ids: Any, key: str | None = None) -> None:
        """Enqueue once the surrounding transaction has committed."""
        after_commit(lambda: self.queue.enqueue(function, *ids, key=key))

    def close(self) -> None:
        self.bus.close()
        self.queue.close()
        self.metrics.close()
        self.database.close()


def open_context(settings: Settings, redis_url: str | None = None) -> Context:
    """Open everything; `redis_url` wins over `hub.redis` (the embedded Valkey's address)."""
    prepare_data_dir(settings.data_dir)
    plugins = Plugins(settings.names("plugins.disabled"))
    url = redis_url or settings.text("hub.redis") or None
    database_url = settings.text("hub.database")
    return Context(
        settings=settings,
        database=Database(database_url, settings.data_dir),
        metrics=MetricsStore(database_url, settings.data_dir),
        plugins=plugins,
        storage=open_storage(settings, plugins),
        queue=JobQueue(url, settings.integer("jobs.timeout_seconds")),
        bus=Bus(url),
        secret=signing_key(settings),
    )


def open_storage(settings: Settings, plugins: Plugins) -> Storage:
    """The storage that `[storage] use` names, with the settings of its own section."""
    name = settings.text("storage.use")
    if name not in plugins.storages:
        known = ", ".join(sorted(plugins.storages)) or "none"
        raise ParsynError(
            ErrorCode.CONFIG, f"storage.use names {name!r}, which is not installed ({known} are)."
        )
    cls = plugins.storages[name]
    section = settings.section(f"storage.{name}")
    return cls(parse_params(cls.Settings, section, loc=f"storage.{name}"), settings.data_dir)


def prepare_data_dir(path: Path) -> None:
    """Create the data directory (0700) or say in one line why it cannot be used."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ParsynError(
            ErrorCode.CONFIG, f"The data directory {path} is a file; name a folder with --data."
        ) from None
    except OSError as error:
        raise ParsynError(
            ErrorCode.CONFIG, f"The data directory {path} cannot be made: {error.strerror}."
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise ParsynError(
            ErrorCode.CONFIG,
            f"The data directory {path} cannot be written to; change its owner or use --data.",
        )


def signing_key(settings: Settings) -> bytes:
    """What tickets are signed with: `hub.secret_key`, else the data directory's own."""
    given = settings.text("hub.secret_key")
    if given:
        return hashlib.sha256(given.encode()).digest()
    return secret_key(settings.data_dir)


def secret_key(data_dir: Path) -> bytes:
    """The hub's signing key, made at the first start (0600)."""
    path = data_dir / "secret.key"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix=".key-") as file:
            file.write(secrets.token_bytes(32).hex())
            file.flush()
            # Whole or not at all: another process may start at the same moment.
            with suppress(FileExistsError):
                os.link(file.name, path)
    return bytes.fromhex(path.read_text().strip())
