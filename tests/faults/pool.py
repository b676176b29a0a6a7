"""Simulated cases, spread over the machine's processors; a case is `kind:seed`."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.postgres_server import PostgresServer

MEMORY = Path("/dev/shm")
LONGEST_SECONDS = 240
"""A case of half a second that takes so long turns in a circle."""


@dataclass(frozen=True)
class Outcome:
    """`kind` is empty for a case that went well, else Lost, Doubled, or another error's name."""

    kind: str
    message: str
    story: tuple[str, ...]


class Pool:
    """Runs cases in child processes; `folder` is where each makes and removes its own."""

    def __init__(self, postgres: PostgresServer | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="faults-", dir=_memory()))
        self._postgres = postgres
        self._workers = ProcessPoolExecutor(
            os.cpu_count() or 1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self.folder, postgres),
        )

    def submit(self, case: str) -> Future[Outcome]:
        return self._workers.submit(play, case)

    def close(self) -> None:
        self._workers.shutdown(cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _memory() -> Path | None:
    return MEMORY if os.access(MEMORY, os.W_OK) else None


# --- in the child -----------------------------------------------------------------------------

_folder: Path
_postgres: PostgresServer | None = None
_templates: dict[str, object] = {}


def _begin(folder: Path, postgres: PostgresServer | None) -> None:
    global _folder, _postgres
    logging.disable(logging.CRITICAL)
    # Frames of processes that were killed complain when they are closed at the end of a case.
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    sys.stderr = (folder / "complaints.log").open("a")
    _folder, _postgres = folder / str(os.getpid()), postgres
    _folder.mkdir()


def play(case: str) -> Outcome:
    """Run one case in this process."""
    from tests.faults.case import Case
    from tests.faults.uploading import UploadCase

    database, _, seed = case.partition(":")
    folder = _folder / seed
    folder.mkdir()
    name = ""
    template = _template(database)
    url = "sqlite"
    if database == "postgres":
        assert _postgres is not None
        name = _postgres.create_database(template.database_name, f"case_{os.getpid()}_{seed}")
        url = _postgres.url(name)
    made = UploadCase if database == "uploads" else Case
    played = made(int(seed), template, folder, url)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(LONGEST_SECONDS)
    try:
        played.run()
    except BaseException as error:
        return Outcome(type(error).__name__, str(error), tuple(played.story))
    finally:
        signal.alarm(0)
        if name and _postgres is not None:
            _postgres.drop_database(name)
        shutil.rmtree(folder, ignore_errors=True)
    return Outcome("", "", tuple(played.story))


def _template(database: str):  # type: ignore[no-untyped-def]
    from tests.faults.world import Template

    if database not in _templates:
        folder = _folder / f"template-{database}"
        name, url = "", "sqlite"
        if database == "postgres":
            assert _postgres is not None
            name = _postgres.create_database("template1", f"template_{os.getpid()}")
            url = _postgres.url(name)
        _templates[database] = Template(folder, url, name)
    return _templates[database]
