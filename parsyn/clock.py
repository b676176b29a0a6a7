"""The one clock. Times are UTC, as seconds since the epoch; tests may set it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_offset = 0.0


def now() -> float:
    """Seconds since the epoch, UTC."""
    return time.time() + _offset


@contextmanager
def shifted(seconds: float) -> Iterator[None]:
    """Let the clock of this process run `seconds` ahead while the context is open."""
    global _offset
    _offset += seconds
    try:
        yield
    finally:
        _offset -= seconds
