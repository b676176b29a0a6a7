"""A Redis of the tests' own: Debian's redis-server on a port of its own, without a disk."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time

import redis

START_SECONDS = 20.0


class RedisServer:
    """Keeps nothing: a restart is also a flush."""

    def __init__(self) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            raise FileNotFoundError("redis-server is not installed: apt-get install redis-server")
        self._binary = binary
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        self._process = subprocess.Popen(
            [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )  # fmt: skip
        client = redis.Redis.from_url(self.url)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                client.ping()
                break
            except redis.RedisError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.02)
        client.close()

    def kill(self) -> None:
        """SIGKILL; `start` brings it back on the same port."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def flush(self) -> None:
        client = redis.Redis.from_url(self.url)
        client.flushall()
        client.close()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
