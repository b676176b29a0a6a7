"""Locks that processes hold on files of the data directory for as long as they live."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

HUB_LOCK = "hub.lock"


@contextmanager
def holding(path: Path, shared: bool = False) -> Iterator[tuple[TextIO | None, str]]:
    """(the locked file, own pid), or (None, a pid that holds it) where it is taken."""
    with path.open("a+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            yield None, file.read().strip() or "unknown"
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file, str(os.getpid())
