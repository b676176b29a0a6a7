"""A hub that hands out the installer, and machines that know nothing of Parsyn yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.appliance import Appliance

NOBODY = 65534
BARE_PATH = "/usr/bin:/bin"
HUB_DIR = Path(__file__).parents[2] / "parsyn" / "hub"
INSTALLER = HUB_DIR / "install_worker.sh"


@dataclass
class Machine:
    """An empty home with a bare PATH; where the tests are root, of a user without rights unless
    `as_root`."""

    home: Path
    as_root: bool = False

    @property
    def prefix(self) -> Path:
        return self.home / ".local"

    @property
    def parsyn(self) -> str:
        return str(self.prefix / "bin" / "parsyn")

    def run(
        self, *command: str, stdin: str = "", path: str = BARE_PATH, **env: str
    ) -> subprocess.CompletedProcess[str]:
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        drop = nobody if os.getuid() == 0 and not self.as_root else {}
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=240, check=False,
            cwd=self.home, env={"HOME": str(self.home), "PATH": path, **env}, **drop,
        )  # fmt: skip

    def install(self, script: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
        """As `curl … | sh -s -- options` does."""
        where = ("--prefix", str(self.prefix)) if self.as_root else ()
        return self.run("sh", "-s", "--", *where, *options, stdin=script, **env)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    # Where a user without rights can get to: pytest's own folders are closed to others.
    home = Path("/tmp") / f"parsyn-home-{os.getpid()}-{abs(hash(tmp_path)) % 10**8}"
    home.mkdir(mode=0o700)
    if os.getuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    yield Machine(home)
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    appliance = Appliance(tmp_path_factory.mktemp("hub") / "data")
    appliance.create_owner()
    appliance.start()
    yield appliance
    appliance.stop()


@pytest.fixture(scope="session")
def script(hub: Appliance) -> str:
    answer = httpx.get(f"{hub.url}/install/worker")
    assert answer.status_code == 200
    return answer.text


@pytest.fixture
def python(machine: Machine) -> str:
    """The Python of the tests, with all that an agent needs; not every user can get at it."""
    if machine.run("sh", "-c", f"'{sys.executable}' -V").returncode:
        machine.as_root = True
    return sys.executable
