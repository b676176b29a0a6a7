"""The only file that owns database threads and connections.

`read` and `write` are for the event loop; RQ jobs, the command line and tests call the same
service functions inside `connection()` and `transaction()`.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import peewee
from playhouse.db_url import parse as parse_url
from playhouse.pool import PooledPostgresqlDatabase, PooledSqliteDatabase

from parsyn import crash
from parsyn.errors import ErrorCode, ParsynError
from parsyn.store.base import database as proxy

A = ParamSpec("A")
R = TypeVar("R")

SQLITE_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",
    "foreign_keys": 1,
    "busy_timeout": 20_000,
    "cache_size": -32_000,
}
READERS = 4
POSTGRES_WRITERS = 4


class Database:
    """One core database. Reads run outside a transaction, each write is one IMMEDIATE one.

    SQLite has a single writer thread: writes queue there instead of fighting for the lock.
    """

    def __init__(self, url: str, data_dir: Path) -> None:
        self.is_sqlite = url == "sqlite"
        self.url = url
        self.path = data_dir / "parsyn.db"
        self.peewee = self._sqlite() if self.is_sqlite else self._postgres(url)
        writers = 1 if self.is_sqlite else POSTGRES_WRITERS
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="db-read")
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="db-write")
        proxy.initialize(self.peewee)

    def _sqlite(self) -> peewee.Database:
        return PooledSqliteDatabase(
            str(self.path),
            max_connections=READERS + 16,
            pragmas=SQLITE_PRAGMAS,
            lock_type="IMMEDIATE",
            # The pool hands a connection to one thread after another, never to two at once.
            check_same_thread=False,
            autoconnect=False,
        )

    def _postgres(self, url: str) -> peewee.Database:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ParsynError(
                ErrorCode.CONFIG, f"hub.database must be `sqlite` or postgresql://…, not {url!r}."
            )
        try:
            options = parse_url(url, unquote_password=True, unquote_user=True)
        except (RuntimeError, ValueError) as error:
            raise ParsynError(
                ErrorCode.CONFIG, f"hub.database must be `sqlite` or postgresql://…: {error}"
            ) from error
        name = options.pop("database")
        return PooledPostgresqlDatabase(
            name, max_connections=READERS + 16, stale_timeout=300, autoconnect=False, **options
        )

    async def read(self, fn: Callable[A, R], *args: A.args, **kwargs: A.kwargs) -> R:
        """Run `fn` on a reader thread, outside a transaction."""
        loop = asyncio.get_running_loop()
        # The thread sees for whom it works.
        inside = contextvars.copy_context()
        return await loop.run_in_executor(
            self._readers, lambda: inside.run(lambda: self._reading(fn, *args, **kwargs))
        )

    async def write(self, fn: Callable[A, R], *args: A.args, **kwargs: A.kwargs) -> R:
        """Run `fn` in one transaction on a writer thread; what it raises rolls it back."""
        loop = asyncio.get_running_loop()
        inside = contextvars.copy_context()
        return await loop.run_in_executor(
            self._writers, lambda: inside.run(lambda: self.write_sync(fn, *args, **kwargs))
        )

    def _reading(self, fn: Callable[A, R], *args: A.args, **kwargs: A.kwargs) -> R:
        with self.connection():
            return fn(*args, **kwargs)

    def write_sync(self, fn: Callable[A, R], *args: A.args, **kwargs: A.kwargs) -> R:
        """`write` for callers that are not on an event loop."""
        with self.transaction():
            return fn(*args, **kwargs)

    @contextmanager
    def connection(self) -> Iterator[None]:
        """A connection for this thread; nested use shares it."""
        if not self.peewee.is_closed():
            yield
            return
        try:
            self.peewee.connect()
        except peewee.OperationalError as error:
            raise ParsynError(
                ErrorCode.UNAVAILABLE,
                f"The database cannot be reached: {str(error).strip()}",
                retry_after=5,
            ) from error
        try:
            yield
        finally:
            self.peewee.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A connection with one transaction around the block."""
        with self.connection(), self.peewee.atomic():
            # The first of all that follows the commit.
            after_commit(lambda: crash.point("commit.after"))
            yield
            crash.point("commit.before")

    def one_at_a_time(self, name: str) -> None:
        """Let no other transaction get past the same place until this one has ended.

        On SQLite there is only ever one that writes.
        """
        if not self.is_sqlite:
            self.peewee.execute_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (name,))

    def check(self) -> None:
        """Raise ParsynError `unavailable` when a query does not answer."""
        with self.connection():
            self.peewee.execute_sql("SELECT 1").fetchone()

    def close(self) -> None:
        """Wait for running calls and close every connection."""
        self._readers.shutdown(wait=True)
        self._writers.shutdown(wait=True)
        self.peewee.close_all()


def after_commit(fn: Callable[[], object]) -> None:
    """Run `fn` once the surrounding transaction has committed; at once where there is none."""
    proxy.obj.after_commit(fn)
