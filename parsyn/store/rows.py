"""Whole tables as plain rows: what a back-up reads, and what a restore writes.

Values are what JSON knows, the same for both databases, so that one can be restored into the other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peewee

from parsyn.store import metrics
from parsyn.store.base import Table
from parsyn.store.conversations import Conversation
from parsyn.store.database import Database
from parsyn.store.processes import HubProcess
from parsyn.store.tables import TABLES
from parsyn.store.workers import Worker

BATCH = 2000
KEPT = tuple(table for table in TABLES if table is not HubProcess)
# What only holds while the hub lives that wrote it.
VOLATILE = {
    (Worker._meta.table_name, "connection"),
    (Conversation._meta.table_name, "answering"),
}


@dataclass(frozen=True)
class Layout:
    """A table by name, its columns, and the order in which its rows are read."""

    name: str
    columns: tuple[str, ...]
    order: tuple[str, ...] = ("id",)


def core_layouts() -> list[Layout]:
    """The core tables, in an order in which their rows can be stored."""
    return [Layout(_name(table), tuple(f.column_name for f in _fields(table))) for table in KEPT]


def metric_layouts() -> list[Layout]:
    return [Layout(name, columns, metrics.KEYS[name]) for name, columns in metrics.COLUMNS.items()]


def _name(table: type[Table]) -> str:
    return str(table._meta.table_name)


def _fields(table: type[Table]) -> Sequence[Any]:
    return list(table._meta.sorted_fields)


# --- reading ----------------------------------------------------------------------------------

Read = Callable[[Layout], Iterator[list[Any]]]


@contextmanager
def snapshot(url: str, data_dir: Path) -> Iterator[Read]:
    """Rows as they are at one moment, while a hub may write on; on SQLite one moment a file."""
    opened = _sqlite_snapshot(data_dir) if url == "sqlite" else _postgres_snapshot(url)
    with opened as read:
        yield read


@contextmanager
def _sqlite_snapshot(data_dir: Path) -> Iterator[Read]:
    files = {name: _open_sqlite(data_dir / name) for name in ("parsyn.db", "metrics.db")}

    def read(layout: Layout) -> Iterator[list[Any]]:
        name = "metrics.db" if layout.name in metrics.COLUMNS else "parsyn.db"
        return _rows(files[name].execute(_select(layout)), layout)

    try:
        yield read
    finally:
        for connection in files.values():
            connection.close()


def _open_sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)
    connection.isolation_level = None
    connection.execute("BEGIN")
    # The first read is the moment that everything after it sees.
    connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    return connection


@contextmanager
def _postgres_snapshot(url: str) -> Iterator[Read]:
    import psycopg

    with metrics.connect_postgres(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True

        def read(layout: Layout) -> Iterator[list[Any]]:
            with connection.cursor(name=f"parsyn_{layout.name}") as cursor:
                cursor.itersize = BATCH
                cursor.execute(_select(layout))
                yield from _rows(cursor, layout)

        yield read


def _select(layout: Layout) -> str:
    columns, order = (", ".join(f'"{c}"' for c in part) for part in (layout.columns, layout.order))
    return f'SELECT {columns} FROM "{layout.name}" ORDER BY {order}'  # noqa: S608


def _rows(found: Iterable[Sequence[Any]], layout: Layout) -> Iterator[list[Any]]:
    hidden = [n for n, c in enumerate(layout.columns) if (layout.name, c) in VOLATILE]
    for row in found:
        values = list(row)
        for place in hidden:
            values[place] = None
        yield values


# --- writing ----------------------------------------------------------------------------------


def is_empty(database: Database) -> bool:
    """Whether nobody has an account there: no tables, or none with a user in it."""
    with database.connection():
        if "users" not in database.peewee.get_tables():
            return True
        return database.peewee.execute_sql("SELECT 1 FROM users LIMIT 1").fetchone() is None


def drop_all(database: Database) -> None:
    """Remove every table of Parsyn's; inside a transaction."""
    names = [_name(table) for table in TABLES] + [*metrics.COLUMNS, "schema_migration"]
    for name in reversed(names):
        database.peewee.execute_sql(f'DROP TABLE IF EXISTS "{name}" CASCADE')


def store(database: Database, layout: Layout, rows: Iterable[list[Any]]) -> int:
    """Insert the rows of a core table, ids included; returns how many. Inside a transaction.

    Rows of a table may name later ones of the same table, so those references are filled in last.
    """
    table = {_name(table): table for table in KEPT}[layout.name]
    own = {f.column_name for f in _fields(table) if getattr(f, "rel_model", None) is table}
    flags = {f.column_name for f in _fields(table) if isinstance(f, peewee.BooleanField)}
    later: list[tuple[str, Any, Any]] = []

    def prepared() -> Iterator[list[Any]]:
        for row in rows:
            for place, column in enumerate(layout.columns):
                if column in own and row[place] is not None:
                    later.append((column, row[place], row[0]))
                    row[place] = None
                elif column in flags and row[place] is not None:
                    row[place] = bool(row[place])
            yield row

    mark = database.peewee.param
    columns = ", ".join(f'"{column}"' for column in layout.columns)
    marks = ", ".join([mark] * len(layout.columns))
    count = _insert(
        database,
        f'INSERT INTO "{layout.name}" ({columns}) VALUES ({marks})',  # noqa: S608
        prepared(),
    )
    for column, value, id in later:
        database.peewee.execute_sql(
            f'UPDATE "{layout.name}" SET "{column}" = {mark} WHERE id = {mark}',  # noqa: S608
            (value, id),
        )
    _continue_ids(database, layout.name)
    return count


def _insert(database: Database, statement: str, rows: Iterable[list[Any]]) -> int:
    cursor, count, batch = database.peewee.cursor(), 0, []
    for row in rows:
        batch.append(row)
        if len(batch) >= BATCH:
            cursor.executemany(statement, batch)
            count, batch = count + len(batch), []
    if batch:
        cursor.executemany(statement, batch)
    return count + len(batch)


def _continue_ids(database: Database, name: str) -> None:
    if not database.is_sqlite:
        database.peewee.execute_sql(
            f"SELECT setval(pg_get_serial_sequence('{name}', 'id'),"  # noqa: S608
            f' (SELECT COALESCE(MAX(id), 1) FROM "{name}"),'
            f' (SELECT COUNT(*) > 0 FROM "{name}"))'
        )


def store_metrics(database: Database, layout: Layout, rows: Iterable[list[Any]]) -> int:
    """Insert rows of a metrics table on PostgreSQL; inside a transaction."""
    for statement in metrics.SCHEMA:
        database.peewee.execute_sql(statement)
    return _insert(database, metrics.INSERTS[layout.name].replace("?", "%s"), rows)


def store_metrics_file(folder: Path, layout: Layout, rows: Iterable[list[Any]]) -> int:
    """Insert rows of a metrics table into `metrics.db` of a folder."""
    connection = sqlite3.connect(folder / "metrics.db")
    try:
        for statement in metrics.SCHEMA:
            connection.execute(statement)
        before = connection.total_changes
        connection.executemany(metrics.INSERTS[layout.name], rows)
        connection.commit()
        return connection.total_changes - before
    finally:
        connection.close()
