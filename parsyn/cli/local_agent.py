"""The appliance's own agent (`parsyn serve --agent`), enrolled without a hand."""

from __future__ import annotations

import logging
import os
import sys
import threading

from parsyn.cli.children import Child
from parsyn.services import accounts
from parsyn.services.context import Context
from parsyn.services.local_worker import ensure_local

log = logging.getLogger(__name__)
WAIT_SECONDS = 0.5


class LocalAgent:
    """Waits until the first account exists, since a worker belongs to somebody; then starts."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stopping = threading.Event()
        self._child: Child | None = None
        self._thread = threading.Thread(target=self._run, name="local-agent", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        if self._child is not None:
            self._child.stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._context.database.connection():
                waiting = accounts.needs_setup()
            if not waiting:
                self._launch()
                return
            self._stopping.wait(WAIT_SECONDS)

    def _launch(self) -> None:
        settings = self._context.settings
        _, key = self._context.database.write_sync(ensure_local, self._context)
        folder = settings.data_dir / "agent"
        folder.mkdir(mode=0o700, exist_ok=True)
        env = {
            "CACHE_DIR": str(folder / "cache"),
            **os.environ,
            "PLATFORM_URL": settings.bound_url,
            "WORKER_API_KEY": key,
            "PARSYN_WORKER_DIR": str(folder),
        }
        log_path = settings.data_dir / "logs" / "agent.log"
        command = [sys.executable, "-m", "parsyn_worker.main", "start"]
        self._child = Child("agent", command, env, log_path)
        self._child.start()
