"""What lives as long as the connections is not looked at again and again."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from typing import cast

import pytest

from parsyn.hub.broker import Broker
from parsyn.hub.collector import MANY, THOROUGH_SECONDS, Collector


class Crowd:
    def __init__(self) -> None:
        self.count = 0

    def connections(self) -> list[None]:
        return [None] * self.count


class Ring:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    gc.unfreeze()
    yield Crowd()
    gc.unfreeze()


def set_aside_a_ring(crowd: Crowd, collector: Collector) -> weakref.ref[Ring]:
    crowd.count = MANY
    ring = Ring()
    collector.look(time.monotonic())
    assert gc.get_freeze_count() > 0
    return weakref.ref(ring)


def test_few_connections_change_nothing(crowd: Crowd) -> None:
    collector = Collector(cast("Broker", crowd))
    crowd.count = MANY - 1
    collector.look(time.monotonic() + 2 * THOROUGH_SECONDS)
    assert gc.get_freeze_count() == 0


def test_what_many_brought_is_set_aside_until_they_leave(crowd: Crowd) -> None:
    collector = Collector(cast("Broker", crowd))
    ring = set_aside_a_ring(crowd, collector)
    gc.collect()
    assert ring() is not None, "a full collection does not look at it"
    crowd.count = 0
    collector.look(time.monotonic())
    assert ring() is None


def test_once_an_hour_all_is_looked_through(crowd: Crowd) -> None:
    collector = Collector(cast("Broker", crowd))
    ring = set_aside_a_ring(crowd, collector)
    collector.look(time.monotonic() + THOROUGH_SECONDS - 60)
    assert ring() is not None
    collector.look(time.monotonic() + THOROUGH_SECONDS)
    assert ring() is None
    assert gc.get_freeze_count() > 0
