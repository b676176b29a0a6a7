"""What a machine measured of itself: all of a short time, an even choice of a long one."""

from __future__ import annotations

import itertools

from parsyn.services.context import Context

DAY = 86_400
START = 1_750_000_000.0


def fill(context: Context, worker_id: int, count: int, distance: float) -> None:
    rows = [(worker_id, START + n * distance, f'{{"n": {n}}}') for n in range(count)]
    context.metrics.start()
    context.metrics.put("machine_points", rows).result(30)


def test_a_long_time_is_thinned_evenly(any_context: Context) -> None:
    metrics = any_context.metrics
    fill(any_context, 1, DAY // 10, 10.0)
    fill(any_context, 2, 50, 10.0)
    found = metrics.machine(1, START - 1, 720)
    assert 700 <= len(found) <= 720
    times = [at for at, _ in found]
    assert times[-1] == START + DAY - 10, "it ends with the newest"
    assert max(b - a for a, b in itertools.pairwise(times)) <= 2 * DAY / 720
    assert [body for _, body in metrics.machine(2, START + 479, 720)] == ['{"n": 48}', '{"n": 49}']
    assert metrics.machine(3, START, 720) == []


def test_what_is_old_is_forgotten(any_context: Context) -> None:
    metrics = any_context.metrics
    fill(any_context, 1, 100, 10.0)
    fill(any_context, 2, 10, 10.0)
    assert metrics.forget_machines([1, 3], START + 900) == 90
    assert metrics.machine(1, 0)[0][0] == START + 900
    assert len(metrics.machine(2, 0)) == 10
