"""A PostgreSQL of the tests' own: a temporary cluster made with Debian's binaries."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_SECONDS = 30.0


def find_binaries() -> Path | None:
    """The folder of the newest installed server; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).parent if elsewhere else None


def _version(path: Path) -> float:
    try:
        return float(path.parts[-3])
    except ValueError:
        return 0.0


class PostgresServer:
    """Listens on 127.0.0.1 and on a socket in its folder; loses all with its folder."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="parsyn-pg-", dir="/tmp"))
        self._data = self._folder / "data"
        # The server refuses to run as root.
        self._as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as_user:
            shutil.chown(self._folder, "postgres")
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0

    def __getstate__(self) -> dict[str, object]:
        """For another process, which may use the server and not stop it."""
        return {**self.__dict__, "_process": None}

    def start(self) -> None:
        """Make the cluster and wait until it answers."""
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        self._run("initdb", "-D", str(self._data), "-U", "postgres", *options)
        self._serve()

    def restart(self) -> None:
        """Break every connection, lose what was not committed, recover, and answer again."""
        self._halt()
        self._serve()

    def _serve(self) -> None:
        self._process = subprocess.Popen(
            [
                *self._as_user, str(self._binaries / "postgres"), "-D", str(self._data),
                "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self._folder), "-F",
                "-c", "max_connections=200", "-c", "logging_collector=off",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError("PostgreSQL did not start")
            time.sleep(0.05)

    def create_database(self, template: str = "template1", name: str = "") -> str:
        """The name of a new database, a copy of `template`."""
        self._made += 1
        name = name or f"parsyn_{self._made}"
        self._run("createdb", *self._at(), "-T", template, name)
        return name

    def drop_database(self, name: str) -> None:
        """Drop it, whoever is connected."""
        self._run("dropdb", *self._at(), "--force", "--if-exists", name)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        """End the server at once and remove its folder."""
        self._halt()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _halt(self) -> None:
        if self._process is not None:
            self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "immediate")
            self._process.wait()

    def _answers(self) -> bool:
        asked = subprocess.run(
            [str(self._binaries / "pg_isready"), *self._at()], capture_output=True, check=False
        )
        return asked.returncode == 0

    def _at(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as_user, str(self._binaries / program), *arguments],
            check=True,
            capture_output=True,
            cwd="/",
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
