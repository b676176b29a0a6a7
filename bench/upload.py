"""A 10 GiB upload that is cut off twenty times: the hub's memory stays flat, the digest is right.

Each cut drops the connection in the middle of a part; the upload then goes on with the parts that
the hub says are missing, as any client does. The bytes are made as they are sent.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import random
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.stage import HubProcess, World, cores, make_world, report, serving

MIB = 1 << 20
JOINED_SECONDS = 1800
NOISE = random.Random(0).randbytes(MIB)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mib", type=int, default=10 * 1024)
    options.add_argument("--cuts", type=int, default=20)
    options.add_argument("--folder", type=Path, help="Where there is room for twice that.")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="parsyn-bench-", dir=given.folder) as work:
        data = Path(work) / "data"
        world = make_world(data, workers=0, jobs=0)
        with serving(data, core=cores()[0]) as hub:
            measure(Upload(hub, world), given.mib * MIB, given.cuts)
    return 0


def measure(upload: Upload, size: int, cuts: int) -> None:
    before = upload.hub.memory_mb(peak=False)
    began, cpu = time.monotonic(), upload.hub.cpu_seconds()
    digest, made = upload.send(size, cuts)
    sent = time.monotonic() - began
    answer = upload.complete(digest)
    report("upload", "size", size / MIB, "MiB")
    report("upload", "cuts", made, "cuts", cuts)
    report("upload", "hub memory, peak above its start", upload.hub.memory_mb() - before, "MB", 64)
    right = answer["status"] == "complete" and answer["sha256"] == digest
    report("upload", "digest equal", right, "yes or no", 1)
    report("upload", "sent", size / MIB / sent, "MiB/s")
    report("upload", "joined after", time.monotonic() - began - sent, "s")
    report("upload", "hub CPU", upload.hub.cpu_seconds() - cpu, "s")


class Upload:
    """One client of the upload API, on one connection at a time."""

    def __init__(self, hub: HubProcess, world: World) -> None:
        self.hub = hub
        self._headers = {"Authorization": f"Bearer {world.api_key}"}
        self._connection = self._connect()
        self.path = ""

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.hub.port, timeout=JOINED_SECONDS)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer. Raises SystemExit with it where it is an error."""
        is_bytes = isinstance(body, bytes)
        content = "application/octet-stream" if is_bytes else "application/json"
        payload = body if is_bytes or body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": content}
        self._connection.request(method, f"/api/v1{path}", payload, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {text.decode()}")
        return json.loads(text)

    def send(self, size: int, cuts: int) -> tuple[str, int]:
        """(SHA-256 of it all, cuts that were made)."""
        body = {"filename": "bench.bin", "size": size, "purpose": "dataset"}
        made = self.ask("POST", "/uploads", body)
        self.path = f"/uploads/{made['id']}"
        part_size, total = made["part_size"], made["parts_total"]
        cut_at = {(n + 1) * total // (cuts + 1) + 1 for n in range(cuts)}
        whole, done = hashlib.sha256(), 0
        for number, part in enumerate(parts(size, part_size), 1):
            whole.update(part)
            if number in cut_at:
                self._cut(number, part)
                done += 1
                received = [known["n"] for known in self.ask("GET", self.path)["received"]]
                if received != list(range(1, number)):
                    raise SystemExit(f"After a cut in part {number} the hub has {received[-3:]}.")
            self.ask("PUT", f"{self.path}/parts/{number}", part)
        return whole.hexdigest(), done

    def _cut(self, number: int, part: bytes) -> None:
        """Half of a part, then the connection drops."""
        self._connection.putrequest("PUT", f"/api/v1{self.path}/parts/{number}")
        for name, value in {**self._headers, "Content-Length": str(len(part))}.items():
            self._connection.putheader(name, value)
        self._connection.endheaders(part[: len(part) // 2])
        self._connection.close()
        self._connection = self._connect()

    def complete(self, digest: str) -> Any:
        """Join the parts; where the answer takes too long the hub goes on, and is asked again."""
        deadline = time.monotonic() + JOINED_SECONDS
        while True:
            try:
                return self.ask("POST", f"{self.path}/complete", {"sha256": digest})
            except (OSError, http.client.HTTPException):
                if time.monotonic() > deadline:
                    raise
                self._connection = self._connect()


def parts(size: int, part_size: int) -> Iterator[bytes]:
    """Bytes that differ from MiB to MiB, in parts."""
    number = 0
    for start in range(0, size, part_size):
        length = min(part_size, size - start)
        blocks = []
        for _ in range(-(-length // MIB)):
            blocks.append(struct.pack("!Q", number) + NOISE[8:])
            number += 1
        yield b"".join(blocks)[:length]


if __name__ == "__main__":
    sys.exit(main())
