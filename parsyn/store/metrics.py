"""Training metrics, logs, samples and machine history: many small rows, written in batches.

On SQLite they live in a file of their own (`metrics.db`, `synchronous=NORMAL`), so that they
never wait for, or hold up, the core database. On PostgreSQL they are tables of the same database.
Every row has a natural key, so the same message stored twice is stored once.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from parsyn import crash
from parsyn.errors import ErrorCode, ParsynError

COMMIT_SECONDS = 0.25

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS metric_points (
        job_id INTEGER NOT NULL, name TEXT NOT NULL, step INTEGER NOT NULL,
        attempt INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, value DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (job_id, name, step))""",
    """CREATE TABLE IF NOT EXISTS log_lines (
        job_id INTEGER NOT NULL, attempt INTEGER NOT NULL, seq INTEGER NOT NULL,
        n INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, level TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (job_id, attempt, seq, n))""",
    """CREATE TABLE IF NOT EXISTS samples (
        job_id INTEGER NOT NULL, attempt INTEGER NOT NULL, seq INTEGER NOT NULL,
        step INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (job_id, attempt, seq))""",
    """CREATE TABLE IF NOT EXISTS machine_points (
        worker_id INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (worker_id, at))""",
)
# A later attempt that comes to the same step again replaces what the earlier one said.
INSERTS = {
    "metric_points": (
        "INSERT INTO metric_points (job_id, name, step, attempt, at, value)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (job_id, name, step) DO UPDATE SET"
        " attempt = excluded.attempt, at = excluded.at, value = excluded.value"
        " WHERE excluded.attempt > metric_points.attempt"
    ),
    "log_lines": (
        "INSERT INTO log_lines (job_id, attempt, seq, n, at, level, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    ),
    "samples": (
        "INSERT INTO samples (job_id, attempt, seq, step, at, body)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    ),
    "machine_points": (
        "INSERT INTO machine_points (worker_id, at, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    ),
}
COLUMNS = {
    "metric_points": ("job_id", "name", "step", "attempt", "at", "value"),
    "log_lines": ("job_id", "attempt", "seq", "n", "at", "level", "text"),
    "samples": ("job_id", "attempt", "seq", "step", "at", "body"),
    "machine_points": ("worker_id", "at", "body"),
}
KEYS = {
    "metric_points": ("job_id", "name", "step"),
    "log_lines": ("job_id", "attempt", "seq", "n"),
    "samples": ("job_id", "attempt", "seq"),
    "machine_points": ("worker_id", "at"),
}
Row = tuple[Any, ...]
Waiting = tuple[str, Sequence[Row], Future[None]]
SEQ_BITS, N_BITS = 28, 12


def log_id(attempt: int, seq: int, n: int) -> int:
    """The id of line `n` of message `seq`: grows with the order of writing, below 2**53."""
    return (attempt << (SEQ_BITS + N_BITS)) | (seq << N_BITS) | n


def _log_key(id: int) -> tuple[int, int, int]:
    return id >> (SEQ_BITS + N_BITS), (id >> N_BITS) & (2**SEQ_BITS - 1), id & (2**N_BITS - 1)


class MetricsStore:
    """Reads are plain queries; writes are handed to one thread that commits every 250 ms.

    `url` is `sqlite` or a PostgreSQL URL.
    """

    def __init__(self, url: str, data_dir: Path, commit_seconds: float = COMMIT_SECONDS) -> None:
        self.is_sqlite = url == "sqlite"
        self._url = url
        self._path = data_dir / "metrics.db"
        self._commit_seconds = commit_seconds
        self.rows_written = 0
        self._inbox: queue.Queue[Waiting | None] = queue.Queue()
        self._hurried = threading.Event()
        self._thread: threading.Thread | None = None
        connection = self._connect()
        if not self.is_sqlite:
            # IF NOT EXISTS alone fails where two processes start at once.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('parsyn metrics'))")
        for statement in SCHEMA:
            connection.execute(statement)
        connection.commit()
        connection.close()

    def _connect(self) -> Any:
        if not self.is_sqlite:
            return connect_postgres(self._url)
        connection = sqlite3.connect(self._path, timeout=20)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def start(self) -> None:
        """Start the writing thread; only the process that receives metrics needs it."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="metrics-writer", daemon=True)
        self._thread.start()

    def put(self, table: str, rows: Sequence[Row]) -> Future[None]:
        """Queue rows of one table (see INSERTS for the columns); done once committed."""
        done: Future[None] = Future()
        self._inbox.put((table, rows, done))
        return done

    def hurry(self) -> None:
        """Commit what was put so far without waiting for more: something waits for it."""
        self._hurried.set()

    def close(self) -> None:
        """Commit what is queued and stop."""
        if self._thread is not None:
            self._inbox.put(None)
            self.hurry()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        connection = self._connect()
        waiting: list[Waiting | None] = []
        while None not in waiting:
            waiting = [self._inbox.get()]
            if waiting[0] is not None:
                # Whoever waits for each of them is woken hundreds of times a second.
                self._hurried.wait(self._commit_seconds)
                self._hurried.clear()
            while not self._inbox.empty():
                waiting.append(self._inbox.get())
            batch = [item for item in waiting if item is not None]
            if batch:
                connection = self._commit(connection, batch)
        if connection is not None:
            connection.close()

    def _commit(self, connection: Any, batch: list[Waiting]) -> Any:
        grouped: dict[str, list[Row]] = defaultdict(list)
        for table, rows, _ in batch:
            grouped[table].extend(rows)
        try:
            connection = connection or self._connect()
            cursor = connection.cursor()
            for table, rows in grouped.items():
                if self.is_sqlite:
                    cursor.executemany(INSERTS[table], rows)
                else:
                    _copy(cursor, table, rows)
            crash.point("metrics.before")
            connection.commit()
            crash.point("metrics.after")
        except Exception as error:
            # The sender keeps its rows until they are acknowledged, so a failed batch is not lost.
            for _, _, done in batch:
                done.set_exception(error)
            return _usable(connection)
        self.rows_written += sum(len(rows) for _, rows, _ in batch)
        for _, _, done in batch:
            done.set_result(None)
        return connection

    def _sql(self, statement: str) -> str:
        return statement if self.is_sqlite else statement.replace("?", "%s")

    def _query(self, statement: str, values: Sequence[Any]) -> list[Row]:
        connection = self._connect()
        try:
            return list(connection.execute(self._sql(statement), tuple(values)).fetchall())
        finally:
            connection.close()

    def series(
        self, job_id: int, names: Iterable[str] = (), since_step: int = 0
    ) -> dict[str, list[tuple[int, float, float]]]:
        """name → [(step, time, value)] in step order, for steps above `since_step`."""
        wanted = list(names)
        marks = f" AND name IN ({', '.join('?' * len(wanted))})" if wanted else ""
        rows = self._query(
            "SELECT name, step, at, value FROM metric_points"  # noqa: S608
            f" WHERE job_id = ? AND step > ?{marks} ORDER BY name, step",
            [job_id, since_step, *wanted],
        )
        found: dict[str, list[tuple[int, float, float]]] = {}
        for name, step, at, value in rows:
            found.setdefault(name, []).append((step, at, value))
        return found

    def logs(self, job_id: int, since: int = 0, limit: int = 1000) -> list[Row]:
        """(id, at, level, text, attempt) of the log lines whose id is above `since`, in order."""
        rows = self._query(
            "SELECT attempt, seq, n, at, level, text FROM log_lines WHERE job_id = ?"
            " AND (attempt, seq, n) > (?, ?, ?) ORDER BY attempt, seq, n LIMIT ?",
            [job_id, *_log_key(since), limit],
        )
        return [(log_id(a, seq, n), at, level, text, a) for a, seq, n, at, level, text in rows]

    def samples(self, job_id: int) -> list[Row]:
        """(step, at, JSON body) in order."""
        return self._query(
            "SELECT step, at, body FROM samples WHERE job_id = ? ORDER BY attempt, seq", [job_id]
        )

    def machine(self, worker_id: int, since: float, limit: int = 2000) -> list[Row]:
        """(at, JSON body) of a machine after `since`, oldest first.

        Of more than `limit` points the last of each of so many equal stretches of time is kept.
        """
        where = "FROM machine_points WHERE worker_id = ? AND at > ?"
        [(count, first, last)] = self._query(
            f"SELECT COUNT(*), MIN(at), MAX(at) {where}",
            [worker_id, since],
        )
        if count <= limit:
            return self._query(f"SELECT at, body {where} ORDER BY at", [worker_id, since])
        return self._query(
            "SELECT at, body FROM machine_points WHERE worker_id = ? AND at IN"  # noqa: S608
            f" (SELECT MAX(at) {where} GROUP BY CAST((at - ?) / ? AS BIGINT)) ORDER BY at",
            [worker_id, worker_id, since, first, (last - first) / (limit - 1)],
        )

    def forget_job(self, job_id: int) -> None:
        """Remove everything of a job that is deleted."""
        connection = self._connect()
        for table in ("metric_points", "log_lines", "samples"):
            connection.execute(self._sql(f"DELETE FROM {table} WHERE job_id = ?"), (job_id,))  # noqa: S608
        connection.commit()
        connection.close()

    def forget_machines(self, worker_ids: Iterable[int], before: float) -> int:
        """Remove what machines measured `before`; returns how many points. One by one, so that
        the writer never waits for long."""
        connection = self._connect()
        statement = self._sql("DELETE FROM machine_points WHERE worker_id = ? AND at < ?")
        removed = 0
        try:
            for worker_id in worker_ids:
                removed += max(0, connection.execute(statement, (worker_id, before)).rowcount)
                connection.commit()
        finally:
            connection.close()
        return removed


def _copy(cursor: Any, table: str, rows: Sequence[Row]) -> None:
    """What INSERTS does, several times faster: PostgreSQL takes many rows best by COPY."""
    columns, key = ", ".join(COLUMNS[table]), ", ".join(KEYS[table])
    cursor.execute(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS new_{table} (LIKE {table}) ON COMMIT DELETE ROWS"
    )
    with cursor.copy(f"COPY new_{table} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    # One statement may meet a key only once: of those that came together the last attempt's.
    order = f"{key}, attempt DESC" if table == "metric_points" else key
    newest = f"SELECT DISTINCT ON ({key}) {columns} FROM new_{table} ORDER BY {order}"  # noqa: S608
    insert, _, rest = INSERTS[table].partition(" VALUES ")
    cursor.execute(f"{insert} {newest} {rest[rest.index('ON CONFLICT') :]}")


def _usable(connection: Any) -> Any:
    """The connection after an error, or None where it is broken: the next batch opens another."""
    try:
        connection.rollback()
        return connection
    except Exception:
        with suppress(Exception):
            connection.close()
        return None


def connect_postgres(url: str) -> Any:
    """A connection of its own. Raises ParsynError `unavailable`."""
    import psycopg

    try:
        return psycopg.connect(url)
    except psycopg.OperationalError as error:
        raise ParsynError(
            ErrorCode.UNAVAILABLE,
            f"The database cannot be reached: {str(error).strip().splitlines()[-1]}",
            retry_after=5,
        ) from error
