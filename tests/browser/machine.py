"""A machine that is added as the dialog says: its commands are run by a shell, as they stand."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

COMMAND_SECONDS = 120


class Machine:
    """An empty home with `parsyn` on its PATH; the agent in it is a real one."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "agent"
        programs = home / "bin"
        programs.mkdir(parents=True)
        parsyn = programs / "parsyn"
        parsyn.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m parsyn.cli.main "$@"\n')
        parsyn.chmod(0o755)
        self.env = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PARSYN_WORKER_DIR": str(self.folder),
            "CACHE_DIR": str(home / "cache"),
            "RECONNECT_DELAY": "1",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, command: str) -> None:
        """One line of a shell, to its end."""
        result = subprocess.run(
            ["/bin/sh", "-c", command],
            text=True, capture_output=True, env=self.env, timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip
        assert result.returncode == 0, f"{command}: {result.stderr}"

    def start(self) -> None:
        """Start the agent in the foreground of a process group of its own."""
        with (self.home / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.home / "bin" / "parsyn"), "start", "--foreground"],
                stdout=log, stderr=log, env=self.env, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """As a power cut: the agent and all that it started are gone at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def await_end(self) -> None:
        assert self.process is not None
        self.process.wait(COMMAND_SECONDS)
        self.process = None

    def clear(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(COMMAND_SECONDS)
        elif (self.folder / ".env").exists():
            self.run("parsyn stop")
        shutil.rmtree(self.home / "cache", ignore_errors=True)
