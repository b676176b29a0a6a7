"""Metric rows stored a second, from the call to the commit, against a bare loop in the same run.

The bare loop is what one would write by hand without keys and acknowledgements: `executemany` into
a table without an index on SQLite, COPY into one on PostgreSQL, commits of the same size. Rounds of
both alternate. A message holds one step's eight values, as an agent sends them.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.stage import database, quantile, report
from parsyn.store.metrics import MetricsStore

Rows = list[tuple[Any, ...]]
NAMES = ("loss", "learning_rate", "grad_norm", "tokens_per_second", "epoch", "cpu_utilization",
         "ram_used", "vram_used")  # fmt: skip
JOBS = 100
GOAL = 30_000
BARE = "CREATE TABLE IF NOT EXISTS bare (job_id INTEGER, name TEXT, step INTEGER, attempt INTEGER,"
BARE += " at DOUBLE PRECISION, value DOUBLE PRECISION)"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rows", type=int, default=120_000, help="Rows of a round.")
    options.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    given = options.parse_args()
    for kind in given.databases:
        with database(kind) as (url, folder):
            store = MetricsStore(url, folder)
            store.start()
            bare = bare_sqlite(folder) if kind == "sqlite" else bare_postgres(url)
            compare(kind, store, bare, given.rounds, given.rows)
            store.close()
    return 0


def compare(
    kind: str, store: MetricsStore, bare: Callable[[Rows], None], rounds: int, rows: int
) -> None:
    ours, theirs = [], []
    for number in range(rounds + 1):
        messages = made(number, rows)
        ours.append(rows / timed(lambda: put(store, messages)))  # noqa: B023
        theirs.append(rows / timed(lambda: bare([row for m in messages for row in m])))  # noqa: B023
    mine, peer = quantile(ours[1:], 0.5), quantile(theirs[1:], 0.5)
    report(f"metrics-store on {kind}", "stored", mine, "rows/s", GOAL)
    report(f"metrics-store on {kind}", "bare loop", peer, "rows/s")
    ratio = quantile([a / b for a, b in zip(ours[1:], theirs[1:], strict=True)], 0.5)
    report(f"metrics-store on {kind}", "ratio to the bare loop", ratio, "ratio")


def made(number: int, rows: int) -> list[Rows]:
    """Messages of a round: a hundred jobs in turn, one step each."""
    messages = []
    for n in range(rows // len(NAMES)):
        step = number * rows + n // JOBS
        messages.append([(n % JOBS, name, step, 1, 1.7e9 + step, 0.5 + n) for name in NAMES])
    return messages


def put(store: MetricsStore, messages: list[Rows]) -> None:
    last = [store.put("metric_points", rows) for rows in messages]
    for done in last:
        done.result(120)


def timed(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def bare_sqlite(folder: Path) -> Callable[[Rows], None]:
    connection = sqlite3.connect(folder / "bare.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(BARE)

    def write(rows: Rows) -> None:
        with connection:
            connection.executemany("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", rows)

    return write


def bare_postgres(url: str) -> Callable[[Rows], None]:
    import psycopg

    connection = psycopg.connect(url)
    connection.execute(BARE)
    connection.commit()

    def write(rows: Rows) -> None:
        with connection.cursor().copy("COPY bare FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        connection.commit()

    return write


if __name__ == "__main__":
    sys.exit(main())
