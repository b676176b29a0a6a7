"""A database of an earlier release is brought to this one with its rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from playhouse.schema_diff import diff_models

from parsyn.store.database import Database
from parsyn.store.migrate import bring_to, migrate
from parsyn.store.tables import TABLES
from tests.postgres_server import PostgresServer

RELEASES = {"0.1.0": ["0001_first"]}
AT = 1_700_000_000.0
OWNED = {"created_at": AT, "user_id": 1, "project_id": 1}
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("users", {"created_at": AT, "email": "a@b.c", "name": "A", "password_hash": "x",
               "role": "owner", "theme": "system", "disabled": False}),
    ("projects", {"created_at": AT, "name": "A", "owner_id": 1}),
    ("workers", {**OWNED, "name": "rig", "kind": "user", "worker_type": "both",
                 "status": "idle", "key_hash": "k", "max_batch_size": 32,
                 "trust_remote_code": False, "paused": True, "draining": False}),
    ("models", {**OWNED, "name": "M", "slug": "m", "state": "ready", "source": "import",
                "version": 1, "formats": "[]", "size": 1}),
    ("conversations", {**OWNED, "title": "T", "params": "{}", "updated_at": AT, "model_id": 1}),
    ("messages", {"created_at": AT, "conversation_id": 1, "role": "user", "content": "Hi"}),
    ("jobs", {**OWNED, "kind": "training", "name": "J", "status": "queued", "request": "{}",
              "params": "{}", "progress": "{}", "metrics_latest": "{}", "placement": "{}"}),
]  # fmt: skip


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """An empty database."""
    if request.param == "sqlite":
        made = Database("sqlite", tmp_path)
        yield made
        made.close()
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    name = server.create_database()
    made = Database(server.url(name), tmp_path)
    yield made
    made.close()
    server.drop_database(name)


@pytest.mark.parametrize("release", RELEASES)
def test_rows_of_an_earlier_release_come_along(
    database: Database, release: str, tmp_path: Path
) -> None:
    with database.transaction():
        bring_to(database, RELEASES[release])
        for table, row in ROWS:
            insert(database, table, row)
    assert migrate(database)[0] == "0002_fleet"
    with database.connection():
        assert not diff_models(database.peewee, list(TABLES))
        for table, row in ROWS:
            found = select(database, table)
            assert {key: found[key] for key in row} == row, table
        worker, job = select(database, "workers"), select(database, "jobs")
        message, talk = select(database, "messages"), select(database, "conversations")
    assert worker["limits"] == "{}"
    assert (worker["protocol"], worker["instance"]) == (None, None)
    assert (job["priority"], job["position"]) == (0, None)
    assert (message["parent_id"], message["rating"], talk["answering"]) == (None, None, None)
    if database.is_sqlite:
        check_copy(tmp_path / "before-0002_fleet.db")


def check_copy(path: Path) -> None:
    with sqlite3.connect(path) as copy:
        assert copy.execute("SELECT name FROM workers").fetchall() == [("rig",)]
        columns = [row[1] for row in copy.execute("PRAGMA table_info(workers)")]
    assert "limits" not in columns


def insert(database: Database, table: str, row: dict[str, Any]) -> None:
    marks = ", ".join([database.peewee.param] * len(row))
    database.peewee.execute_sql(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    )


def select(database: Database, table: str) -> dict[str, Any]:
    cursor = database.peewee.execute_sql(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))
