"""What this process has counted since it started, for the monitoring."""

from __future__ import annotations

import threading
from collections import Counter
from enum import StrEnum

from parsyn.store.database import after_commit


class Counted(StrEnum):
    """The name of each is that of its figure at `/metrics`."""

    LOST = "parsyn_attempts_lost"
    REQUEUED = "parsyn_attempts_requeued"
    REFUSED = "parsyn_offers_not_taken"


_counts: Counter[str] = Counter()
_lock = threading.Lock()


def count(what: Counted) -> None:
    """Count one, once the surrounding transaction has committed."""
    after_commit(lambda: _add(what))


def _add(what: Counted) -> None:
    with _lock:
        _counts[what] += 1


def counts() -> dict[Counted, int]:
    with _lock:
        return {what: _counts[what] for what in Counted}
