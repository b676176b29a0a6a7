"""What `make bench` knows by name is there, and how a segment's speed is reckoned."""

from __future__ import annotations

import math

from bench.run import BENCHMARKS, script_of
from bench.watching import BATCH, LENGTH, share, speed


def test_every_benchmark_has_its_script() -> None:
    assert {name for name in BENCHMARKS if not script_of(name).is_file()} == set()


def test_a_speed_is_between_the_first_and_the_last_report_inside() -> None:
    reports = [(1, 0.5), (3, 1.0), (5, 2.0), (9, 3.0), (11, 3.5)]
    assert speed((0.9, 3.1, True, 0.0), reports) == LENGTH * BATCH * (9 - 3) / (3.0 - 1.0)
    assert math.isnan(speed((0.9, 1.5, True, 0.0), reports))


def test_the_hubs_share_is_that_of_one_kind_of_segment() -> None:
    segments = [(0.0, 10.0, True, 1.0), (10.0, 20.0, False, 0.2), (20.0, 30.0, True, 2.0)]
    assert share(segments, True) == 3.0 / 20.0
    assert share(segments, False) == 0.02
