"""The schema in the database is the one in the code, on both databases."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playhouse.schema_diff import diff_models

from parsyn.errors import ParsynError
from parsyn.services.context import Context
from parsyn.store.database import Database
from parsyn.store.metrics import MetricsStore
from parsyn.store.migrate import migrate, status
from parsyn.store.tables import TABLES
from parsyn.store.users import User
from tests.postgres_server import PostgresServer


def test_migrations_make_the_schema_of_the_code(any_context: Context) -> None:
    with any_context.database.connection():
        difference = diff_models(any_context.database.peewee, list(TABLES))
    assert not difference, str(difference)


def test_migrating_again_does_nothing(any_context: Context) -> None:
    assert migrate(any_context.database) == []
    assert all(applied for _, applied in status(any_context.database))


def test_many_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    database = Database("sqlite", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        applied = [done.result() for done in [pool.submit(migrate, database) for _ in range(4)]]
    database.close()
    assert sum(bool(names) for names in applied) == 1


@pytest.mark.postgres
def test_processes_that_start_at_once_on_an_empty_database(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Each with connections of its own, as processes have them."""
    name = postgres.create_database()
    url = postgres.url(name)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: MetricsStore(url, tmp_path).close(), range(24)))
    postgres.drop_database(name)


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = Database("sqlite", tmp_path)
    migrate(database)
    database.close()
    with sqlite3.connect(tmp_path / "parsyn.db") as connection:
        table = next(
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "migration" in name
        )
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        old = connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
        row = dict(zip(columns, old, strict=True)) | {"name": "9999_later"}
        if "id" in row:
            row["id"] = 9999
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values())
        )
    database = Database("sqlite", tmp_path)
    with pytest.raises(ParsynError, match=r"newer Parsyn.*9999_later"):
        migrate(database)
    database.close()


def test_what_raises_is_rolled_back(any_context: Context) -> None:
    def half() -> None:
        User.create(email="a@example.org", name="A", password_hash="x")
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        any_context.database.write_sync(half)
    with any_context.database.connection():
        assert User.select().count() == 0
