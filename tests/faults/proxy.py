"""A TCP proxy that a test can tell to be a bad network."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass, field


@dataclass(eq=False)
class Pair:
    """The two connections that make one. `used_at` is on the monotonic clock."""

    near: socket.socket
    far: socket.socket
    used_at: float = field(default_factory=time.monotonic)

    def reset(self) -> None:
        """Both ends get a RST."""
        for end in (self.near, self.far):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()


class Proxy:
    """Listens on a port of its own and passes on to `target`.

    `cut`: no connection lives. `holds`: bytes wait (half-open). `delay`: seconds that every chunk
    takes longer. `idle`: seconds of silence after which a connection is cut.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.cut = self.holds = False
        self.delay = 0.0
        self.idle: float | None = None
        self.idle_cuts = 0
        self._pairs: list[Pair] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._closing = False
        for loop in (self._accept, self._watch):
            threading.Thread(target=loop, daemon=True).start()

    def close(self) -> None:
        self._closing = True
        self._listener.close()
        self.reset()

    def reset(self) -> None:
        """Break every connection now."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.reset()

    def _accept(self) -> None:
        while not self._closing:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.cut:
                Pair(near, near).reset()
                continue
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        while self.holds and not self._closing:
            time.sleep(0.02)
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            Pair(near, near).reset()
            return
        pair = Pair(near, far)
        with self._lock:
            self._pairs.append(pair)
        self._pass_on(pair)
        with self._lock:
            if pair in self._pairs:
                self._pairs.remove(pair)
        near.close()
        far.close()

    def _pass_on(self, pair: Pair) -> None:
        other = {pair.near: pair.far, pair.far: pair.near}
        while True:
            try:
                ready, _, _ = select.select(list(other), [], [], 0.1)
                for end in ready:
                    while self.holds and not self._closing:
                        time.sleep(0.02)
                    data = end.recv(65536)
                    if not data:
                        return
                    time.sleep(self.delay)
                    pair.used_at = time.monotonic()
                    other[end].sendall(data)
            except (OSError, ValueError):
                return

    def _watch(self) -> None:
        while not self._closing:
            time.sleep(0.05)
            if self.cut:
                self.reset()
            limit = self.idle
            if limit is None:
                continue
            with self._lock:
                silent = [p for p in self._pairs if time.monotonic() - p.used_at > limit]
            for pair in silent:
                self.idle_cuts += 1
                pair.reset()
