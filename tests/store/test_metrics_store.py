"""What the metrics store keeps of rows that come twice, in one batch or in several."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from parsyn.services.context import Context
from parsyn.store.metrics import MetricsStore

Point = tuple[int, str, int, int, float, float]


def put(context: Context, table: str, *batches: list[tuple[object, ...]]) -> None:
    for done in [context.metrics.put(table, rows) for rows in batches]:
        done.result(30)


def test_the_later_attempt_wins_in_whatever_order_they_come(any_context: Context) -> None:
    first = (1, "loss", 5, 1, 10.0, 2.5)
    second = (1, "loss", 5, 2, 20.0, 1.5)
    third = (1, "loss", 6, 2, 21.0, 1.25)
    put(any_context, "metric_points", [second, first, third], [first])
    assert any_context.metrics.series(1) == {"loss": [(5, 20.0, 1.5), (6, 21.0, 1.25)]}
    put(any_context, "metric_points", [first, second])
    assert any_context.metrics.series(1) == {"loss": [(5, 20.0, 1.5), (6, 21.0, 1.25)]}
    put(any_context, "metric_points", [(1, "loss", 5, 3, 30.0, 0.5)])
    assert any_context.metrics.series(1)["loss"][0] == (5, 30.0, 0.5)


def test_lines_are_stored_once_and_as_they_are(any_context: Context) -> None:
    texts = ["a\tb\\N", "two\nlines\r\n", "\\.", "quotes \" and '", "é 漢 🙂", ""]
    rows: list[tuple[object, ...]] = [
        (1, 1, 7, n, 1.5, "info", text) for n, text in enumerate(texts)
    ]
    put(any_context, "log_lines", [*rows, *rows], rows)
    assert [row[3] for row in any_context.metrics.logs(1)] == texts


def test_a_bad_row_fails_its_own_batch_and_the_next_one_is_stored(any_context: Context) -> None:
    bad = any_context.metrics.put("metric_points", [(1, "loss", 1, 1, 1.0, None)])
    assert bad.exception(30) is not None
    put(any_context, "metric_points", [(1, "loss", 1, 1, 1.0, 2.0)])
    assert any_context.metrics.series(1) == {"loss": [(1, 1.0, 2.0)]}


def test_who_waits_for_a_batch_may_hurry_it(data_dir: Path) -> None:
    data_dir.mkdir()
    store = MetricsStore("sqlite", data_dir, commit_seconds=600)
    store.start()
    done = store.put("metric_points", [(1, "loss", 1, 1, 1.0, 2.0)])
    with pytest.raises(TimeoutError):
        done.result(0.2)
    store.hurry()
    done.result(30)
    assert store.series(1) == {"loss": [(1, 1.0, 2.0)]}
    store.close()


def test_a_broken_connection_is_replaced(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a restart of PostgreSQL, which may still be away when the next batch comes."""
    store, connect, away = context.metrics, context.metrics._connect, [True, True]

    def reconnect() -> object:
        if away:
            away.pop()
            raise ConnectionError("the database system is starting up")
        return connect()

    class Broken:
        def cursor(self) -> object:
            raise ConnectionError("server closed the connection unexpectedly")

        rollback = close = cursor

    point = [(1, "loss", 1, 1, 1.0, 2.0)]
    monkeypatch.setattr(store, "_connect", reconnect)
    assert store._commit(Broken(), [("metric_points", point, failed := Future())]) is None
    for _ in range(2):
        assert store._commit(None, [("metric_points", point, Future())]) is None
    connection = store._commit(None, [("metric_points", point, done := Future())])
    assert (failed.exception() is not None, done.exception()) == (True, None)
    connection.close()
