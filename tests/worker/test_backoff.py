"""How soon agents come back, on a clock that the test moves."""

from __future__ import annotations

import random

import pytest

from parsyn_worker.backoff import LONGEST, Backoff

SHORTEST = 5.0


@pytest.fixture(autouse=True)
def same_dice() -> None:
    random.seed(7)


def back_after(outage: float) -> tuple[float, int]:
    """(seconds until one agent is back after a hub was away for so long, its tries)."""
    backoff, at, tries = Backoff(SHORTEST), 1000.0, 0
    while at <= 1000.0 + outage:
        at += backoff.wait(at)
        tries += 1
    return at - 1000.0, tries


@pytest.mark.parametrize("outage", [0.5, 3, 12])
def test_a_fleet_is_back_within_twice_the_outage(outage: float) -> None:
    longest = max(back_after(outage)[0] for _ in range(1000))
    assert longest <= 2 * outage + SHORTEST


def test_it_comes_back_spread_over_the_time_not_in_step() -> None:
    backs = sorted(back_after(3)[0] for _ in range(1000))
    per_second = [sum(n <= back < n + 1 for back in backs) for n in range(3, 8)]
    assert sum(per_second) == 1000
    assert max(per_second) < 450


def test_a_long_outage_is_not_hammered() -> None:
    tries = [back_after(3600)[1] for _ in range(100)]
    assert sum(tries) / len(tries) < 3600 / (LONGEST / 2) + 20


def test_after_a_connection_it_begins_anew() -> None:
    backoff = Backoff(SHORTEST)
    backoff.wait(0)
    assert max(backoff.wait(1e6) for _ in range(100)) > SHORTEST
    backoff.connected()
    assert max(backoff.wait(2e6) for _ in range(100)) <= SHORTEST
