"""A child's end of its pipes: orders in, events out, and death with its agent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from pydantic import BaseModel

from parsyn_worker.events import EVENTS_FD


class Channel:
    """Writes events whole, one JSON line each, from any thread."""

    def __init__(self) -> None:
        # Children of this process must not hold the pipe open after it.
        fd = int(os.environ.pop(EVENTS_FD))
        os.set_inheritable(fd, False)
        self._events = os.fdopen(fd, "wb", buffering=0)
        self._lock = threading.Lock()

    def emit(self, event: BaseModel) -> None:
        line = event.model_dump_json().encode() + b"\n"
        with self._lock:
            while line:
                line = line[self._events.write(line) or 0 :]

    def orders(self) -> Iterator[bytes]:
        """Lines from the agent; ends when the agent is gone."""
        # Not `yield from`: closing this generator would close stdin with it.
        for line in sys.stdin.buffer:  # noqa: UP028
            yield line

    def on_orphaned(self, ended: Callable[[], None] | None = None) -> None:
        """End this process and all that it started as soon as the agent is gone."""
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()

    def _watch(self, ended: Callable[[], None] | None) -> None:
        # Not through the buffered reader: a thread that waits with its lock held when the
        # interpreter ends is a fatal error of Python.
        while os.read(sys.stdin.fileno(), 65536):
            pass
        if ended:
            ended()
        kill_own_group()


def kill_own_group() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)
