"""When an agent tries its hub again."""

from __future__ import annotations

import random

LONGEST = 60.0


class Backoff:
    """Full jitter, from `shortest` to 60 s: a thousand agents that lost one hub must not come back
    in step.

    Each wait is drawn from zero to as long as the outage has lasted so far. So a hub that restarts
    within seconds has all of them back within seconds, and one that is away for long is asked by
    each about once in half a minute. Times are seconds of any clock that only goes forward.
    """

    def __init__(self, shortest: float) -> None:
        self._shortest = shortest
        self._since: float | None = None

    def connected(self) -> None:
        """The outage is over."""
        self._since = None

    def wait(self, at: float) -> float:
        """Seconds to wait at `at`, when a try has just failed or a connection was lost."""
        if self._since is None:
            self._since = at
        cap = min(LONGEST, max(self._shortest, at - self._since))
        return random.uniform(0, cap)
