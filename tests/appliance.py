"""A real appliance as a process: what end-to-end and browser tests run against."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from parsyn.demo.client import HubClient

READY_SECONDS = 60
PASSWORD = "correct horse battery"
EMAIL = "owner@example.com"


class Appliance:
    """`parsyn serve` on a data directory and any free port (or a fixed one)."""

    def __init__(
        self, data: Path, *, agent: bool = False, port: int = 0, env: dict[str, str] | None = None
    ) -> None:
        self.data = data
        self.agent = agent
        self.port = port
        self.env = env or {}
        self.greeting = ""
        self.url = ""
        self.clients: list[HubClient] = []

    def start(self) -> None:
        """Start and wait for the greeting; its log is data/../hub.log."""
        command = [
            sys.executable, "-m", "parsyn.cli.main", "serve",
            "--data", str(self.data), "--port", str(self.port),
        ]  # fmt: skip
        self.log = self.data.with_name(f"{self.data.name}-hub.log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, *(["--agent"] if self.agent else [])],
                stdout=subprocess.PIPE,
                stderr=errors,
                # Measuring the machine takes seconds, and has tests of its own.
                env={"BENCHMARK": "false", **os.environ, **self.env},
            )
        self._wait()

    def _wait(self) -> None:
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            select.select([self.process.stdout], [], [], 0.5)
            self.greeting += (self.process.stdout.read() or b"").decode()
            address = re.search(r"Address\s+(\S+)", self.greeting)
            complete = "Data directory" in self.greeting and self.greeting.endswith("\n")
            if address and complete:
                self.url = address[1]
                self.port = int(self.url.rsplit(":", 1)[1])
                return
            if self.process.poll() is not None:
                break
        raise AssertionError(f"The hub did not start:\n{self.log.read_text()}")

    def client(self, email: str = EMAIL, password: str = PASSWORD) -> HubClient:
        made = HubClient(self.url, email, password)
        self.clients.append(made)
        return made

    def create_owner(self) -> None:
        """An owner account, before or while the hub runs."""
        subprocess.run(
            [
                sys.executable, "-m", "parsyn.cli.main", "admin", "create", "--email", EMAIL,
                "--name", "Olive Owner", "--password-stdin", "--data", str(self.data),
            ],
            input=f"{PASSWORD}\n", text=True, check=True, capture_output=True,
        )  # fmt: skip

    def import_model(self, folder: Path, name: str) -> dict[str, object]:
        """`parsyn models import`, while the hub runs."""
        import json

        result = subprocess.run(
            [
                sys.executable, "-m", "parsyn.cli.main", "models", "import", str(folder),
                "--name", name, "--json", "--data", str(self.data),
            ],
            text=True, check=True, capture_output=True,
        )  # fmt: skip
        found: dict[str, object] = json.loads(result.stdout)
        return found

    def stop(self) -> int:
        """SIGTERM and wait; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self._close()
        return code

    def _close(self) -> None:
        while self.clients:
            self.clients.pop().close()
        if self.process.stdout:
            self.process.stdout.close()

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self.process.kill()
        self.process.wait()
        self.greeting = ""
        self._close()
