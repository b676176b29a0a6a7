"""Bring a database to this version's schema, under a lock and with a back-up first."""

from __future__ import annotations

import fcntl
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from playhouse.migrations import Migration, Runner

from parsyn.errors import ErrorCode, ParsynError
from parsyn.store import migrations as package
from parsyn.store.database import Database

ADVISORY_LOCK = 0x70617273796E


class PackagedRunner(Runner):
    """Finds migrations as modules, so that they are found inside a zipapp too."""

    def migrations(self) -> list[Any]:
        names = sorted(
            m.name for m in pkgutil.iter_modules(package.__path__) if m.name[0].isdigit()
        )
        return [PackagedMigration(int(name.split("_")[0]), name, name, None) for name in names]


class PackagedMigration(Migration):
    def load(self) -> Any:
        return importlib.import_module(f"{package.__name__}.{self.name}")


def status(database: Database) -> list[tuple[str, datetime | None]]:
    """(name, when it was applied or None) of every migration, known here or found applied."""
    with database.connection():
        return [(row.name, row.applied) for row in PackagedRunner(database.peewee).status()]


def migrate(database: Database) -> list[str]:
    """Apply what is pending; returns the names. Raises when the database is newer."""
    with _locked(database), database.connection():
        runner = PackagedRunner(database.peewee)
        rows = runner.status()
        newer = [row.name for row in rows if row.path is None]
        if newer:
            raise ParsynError(
                ErrorCode.CONFIG,
                f"The database was made by a newer Parsyn (it has {newer[-1]}). "
                "Start that version, or restore a back-up made by this one.",
            )
        pending = [row.name for row in rows if not row.applied]
        if pending and len(pending) < len(rows):
            _back_up(database, pending[0])
        return list(runner.up())


def bring_to(database: Database, applied: Sequence[str]) -> None:
    """Apply exactly the migrations that a back-up names, inside the caller's transaction.

    Raises ParsynError for one that this version does not know.
    """
    runner = PackagedRunner(database.peewee)
    known = [row.name for row in runner.migrations()]
    newer = [name for name in applied if name not in known]
    if newer:
        raise ParsynError(
            ErrorCode.CONFIG,
            f"The back-up was made by a newer Parsyn (it has {newer[-1]}). "
            "Install that version, then restore.",
        )
    for name in applied:
        runner.up(name)


def bring_up(database: Database) -> list[str]:
    """Apply what is pending, inside the caller's transaction."""
    return list(PackagedRunner(database.peewee).up())


def _back_up(database: Database, before: str) -> None:
    if database.is_sqlite:
        target = database.path.with_name(f"before-{before}.db")
        target.unlink(missing_ok=True)
        database.peewee.execute_sql("VACUUM INTO ?", (str(target),))


@contextmanager
def _locked(database: Database) -> Iterator[None]:
    if database.is_sqlite:
        with _file_lock(database.path.with_name("migrate.lock")):
            yield
        return
    with database.connection():
        database.peewee.execute_sql("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
        try:
            yield
        finally:
            database.peewee.execute_sql("SELECT pg_advisory_unlock(%s)", (ADVISORY_LOCK,))


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
