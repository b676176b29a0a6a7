"""What must reach the hub, on disk until it has: messages by (task, attempt, seq), and deliveries.

One SQLite file. All methods are synchronous; the agent calls them from one thread of their own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from parsyn import crash
from parsyn.wire.worker import Spooled, TaskKey

SCHEMA = """
CREATE TABLE IF NOT EXISTS attempt (
  task_id INTEGER NOT NULL, attempt INTEGER NOT NULL, last_seq INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0, name TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (task_id, attempt)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS message (
  id INTEGER PRIMARY KEY AUTOINCREMENT, task_id INTEGER NOT NULL, attempt INTEGER NOT NULL,
  seq INTEGER NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL, body TEXT NOT NULL,
  UNIQUE (task_id, attempt, seq));
CREATE TABLE IF NOT EXISTS delivery (
  id INTEGER PRIMARY KEY AUTOINCREMENT, task_id INTEGER NOT NULL, attempt INTEGER NOT NULL,
  kind TEXT NOT NULL, folder TEXT, body TEXT NOT NULL);
"""

KEPT = ("state", "checkpoint", "result")
"""Types that are never dropped, however full the spool is."""

THINNED = ("metric", "log", "sample")
"""Types that may go when the spool is full, in this order, the oldest first."""

Build = Callable[[int], Spooled]


@dataclass(frozen=True)
class Delivery:
    """Files to store before a message may be sent: a checkpoint or a result."""

    id: int
    task_id: int
    attempt: int
    kind: Literal["checkpoint", "result"]
    folder: Path | None
    body: str


@dataclass(frozen=True)
class Waiting:
    """A message that the hub has not acknowledged; `id` grows in the order of sending."""

    id: int
    body: str


class Spool:
    """The file at `path`; about `limit` bytes of messages are kept when the hub is away."""

    def __init__(self, path: Path, limit: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.limit = limit
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)
        self._size: int = self._one("SELECT COALESCE(SUM(size), 0) FROM message")

    def close(self) -> None:
        self._db.close()

    # --- attempts ----------------------------------------------------------------------------

    def begin(self, key: TaskKey, name: str) -> None:
        """Remember an accepted attempt, so that a restarted agent can answer for it."""
        self._db.execute(
            "INSERT OR IGNORE INTO attempt (task_id, attempt, name) VALUES (?, ?, ?)",
            (key.task_id, key.attempt, name),
        )

    def unfinished(self) -> list[TaskKey]:
        """Attempts that were begun and have neither a result nor one to be delivered."""
        return self._keys(
            "SELECT task_id, attempt FROM attempt WHERE NOT ended AND NOT EXISTS (SELECT 1 FROM"
            " delivery d WHERE d.task_id = attempt.task_id AND d.attempt = attempt.attempt"
            " AND d.kind = 'result')"
        )

    def delivering(self) -> list[TaskKey]:
        """Attempts whose files wait to be stored."""
        return self._keys(
            "SELECT task_id, attempt FROM delivery GROUP BY task_id, attempt ORDER BY MIN(id)"
        )

    def forget(self, key: TaskKey) -> None:
        """Drop everything of an attempt that another one has replaced."""
        with self._transaction():
            for table in ("message", "delivery", "attempt"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE task_id = ? AND attempt = ?",  # noqa: S608
                    (key.task_id, key.attempt),
                )
        self._size = self._one("SELECT COALESCE(SUM(size), 0) FROM message")

    # --- messages ----------------------------------------------------------------------------

    def put(self, key: TaskKey, build: Build, *, delivered: int | None = None) -> int:
        """Give the next `seq` to `build` and keep its message; returns the seq.

        `delivered` names a delivery that this message completes: both happen or neither.
        """
        with self._transaction():
            seq = self._next(key)
            message = build(seq)
            kind, body = str(getattr(message, "type", "")), message.model_dump_json()
            self._db.execute(
                "INSERT INTO message (task_id, attempt, seq, type, size, body)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (key.task_id, key.attempt, seq, kind, len(body), body),
            )
            if kind == "result":
                self._db.execute(
                    "UPDATE attempt SET ended = 1 WHERE task_id = ? AND attempt = ?",
                    (key.task_id, key.attempt),
                )
            if delivered is not None:
                self._db.execute("DELETE FROM delivery WHERE id = ?", (delivered,))
            crash.point("spool.before")
        crash.point("spool.after")
        self._size += len(body)
        if self._size > self.limit:
            self._thin()
        if kind not in THINNED and kind != "state":
            # Commits in WAL mode may be lost with the machine's power; this one must not.
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return seq

    def waiting(self, after: int = 0, count: int = 256) -> list[Waiting]:
        """Unacknowledged messages in order, from the first whose id is above `after`."""
        rows = self._db.execute(
            "SELECT id, body FROM message WHERE id > ? ORDER BY id LIMIT ?", (after, count)
        )
        return [Waiting(*row) for row in rows]

    def acknowledge(self, key: TaskKey, seqs: tuple[int, ...]) -> None:
        """The hub has these for good. An attempt with nothing left to say is forgotten."""
        crash.point("spool.heard")
        with self._transaction():
            for seq in seqs:
                row = self._db.execute(
                    "DELETE FROM message WHERE task_id = ? AND attempt = ? AND seq = ?"
                    " RETURNING size",
                    (key.task_id, key.attempt, seq),
                ).fetchone()
                self._size -= row[0] if row else 0
            self._db.execute(
                "DELETE FROM attempt WHERE task_id = ? AND attempt = ? AND ended AND NOT EXISTS"
                " (SELECT 1 FROM message m WHERE m.task_id = attempt.task_id"
                " AND m.attempt = attempt.attempt)",
                (key.task_id, key.attempt),
            )
        crash.point("spool.forgotten")

    def size(self) -> int:
        """Bytes of the messages that wait."""
        return self._size

    # --- deliveries --------------------------------------------------------------------------

    def deliver(
        self, key: TaskKey, kind: Literal["checkpoint", "result"], folder: Path | None, body: str
    ) -> None:
        self._db.execute(
            "INSERT INTO delivery (task_id, attempt, kind, folder, body) VALUES (?, ?, ?, ?, ?)",
            (key.task_id, key.attempt, kind, str(folder) if folder else None, body),
        )

    def deliveries(self, key: TaskKey) -> list[Delivery]:
        """What of an attempt waits to be stored, in order; a result comes last."""
        rows = self._db.execute(
            "SELECT id, task_id, attempt, kind, folder, body FROM delivery"
            " WHERE task_id = ? AND attempt = ? ORDER BY id",
            (key.task_id, key.attempt),
        )
        return [
            Delivery(id, task_id, attempt, kind, Path(folder) if folder else None, body)
            for id, task_id, attempt, kind, folder, body in rows
        ]

    def drop_delivery(self, id: int) -> None:
        self._db.execute("DELETE FROM delivery WHERE id = ?", (id,))

    # --- inside ------------------------------------------------------------------------------

    def _next(self, key: TaskKey) -> int:
        row = self._db.execute(
            "INSERT INTO attempt (task_id, attempt, last_seq) VALUES (?, ?, 1)"
            " ON CONFLICT DO UPDATE SET last_seq = last_seq + 1 RETURNING last_seq",
            (key.task_id, key.attempt),
        ).fetchone()
        return int(row[0])

    def _thin(self) -> None:
        # A tenth below the limit, so that a full spool does not thin at each message.
        target = self.limit * 9 // 10
        for kind in THINNED:
            while self._size > target and self._drop(self._doomed(kind, self._size - target)):
                pass

    def _doomed(self, kind: str, excess: int) -> list[tuple[int, int]]:
        """(id, size) of the oldest of a type; of metrics every second, so a curve keeps its shape.

        The type's last two metrics stay: the newest values are what a person looks for.
        """
        rows = self._db.execute("SELECT id, size FROM message WHERE type = ? ORDER BY id", (kind,))
        every = rows.fetchall()[:-2][::2] if kind == "metric" else rows.fetchall()
        doomed = []
        for row in every:
            if excess <= 0:
                break
            doomed.append(row)
            excess -= row[1]
        return doomed

    def _drop(self, rows: list[tuple[int, int]]) -> bool:
        with self._transaction():
            self._db.executemany("DELETE FROM message WHERE id = ?", [(row[0],) for row in rows])
        self._size -= sum(row[1] for row in rows)
        return bool(rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _keys(self, query: str) -> list[TaskKey]:
        return [TaskKey(task_id=row[0], attempt=row[1]) for row in self._db.execute(query)]

    def _one(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])
