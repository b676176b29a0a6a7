"""`parsyn.pyz` for the machines that shall become agents, of what this hub itself runs.

A hub that runs from a zipapp gives that. Any other one makes a zipapp of its installed
distributions, once for each version of its code, and keeps it in the data directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from parsyn import __version__

OWN = ("parsyn", "parsyn_worker", "parsyn_plugins")
CARRIED = ("parsyn", "pip")
"""pip brings the packages of a runtime, also where the system has none."""
NOT_NEEDED = shutil.ignore_patterns("__pycache__", "tests", "*.pyi", "*.pxd", "*.pyx", "*.h")
BUILD_SECONDS = 900


def running() -> Path | None:
    """The zipapp that this process runs from, if it does."""
    started = Path(sys.argv[0])
    return started.absolute() if zipfile.is_zipfile(started) else None


def kept(data_dir: Path) -> Path:
    """Where the zipapp of this code is, or will be."""
    return data_dir / "cache" / f"parsyn-{__version__}-{_fingerprint()}.pyz"


def ready(data_dir: Path) -> Path | None:
    """The zipapp to hand out; None while it has to be built."""
    path = running() or kept(data_dir)
    return path if path.is_file() else None


NO_COMMENT = 2
"""The last bytes of a zip archive without a comment are the length of none."""


def comment(hub: str) -> bytes:
    """What the end of an archive is replaced by, so that it says which hub it is from.

    `parsyn init` reads it (parsyn.cli.origin).
    """
    text = f"parsyn of {hub}".encode()
    return struct.pack("<H", len(text)) + text


def build(target: Path) -> None:
    """Make the zipapp at `target` (under a lock, then renamed) and drop those of other versions.

    Takes about half a minute of a core. Raises subprocess.CalledProcessError.
    """
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock(target.parent / "zipapp.lock"):
        if target.is_file():
            return
        for left in target.parent.glob("zipapp-*"):
            # Of a build that was killed.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="zipapp-") as folder:
            packages, draft = Path(folder) / "site-packages", Path(folder) / "parsyn.pyz"
            _gather(packages)
            command = [
                sys.executable, "-m", "shiv", "--site-packages", str(packages), "--compressed",
                "--extend-pythonpath", "--reproducible", "-c", "parsyn", "-o", str(draft),
            ]  # fmt: skip
            subprocess.run(
                command, check=True, capture_output=True, timeout=BUILD_SECONDS,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )  # fmt: skip
            draft.replace(target)
        for other in target.parent.glob("parsyn-*.pyz"):
            if other != target:
                other.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _gather(target: Path) -> None:
    """Copy what `parsyn` and everything that it requires have installed."""
    target.mkdir(parents=True)
    for distribution in _required(*CARRIED):
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            first = file.parts[0]
            # Our own are copied as they are now: a checkout's list of files may be an old one.
            left_out = first in OWN or first.startswith("__editable__") or ".." in file.parts
            if not left_out and source.is_file() and not _skipped(source):
                place = target / file
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place)
    for name in OWN:
        shutil.copytree(_home(name), target / name, ignore=NOT_NEEDED)


def _skipped(path: Path) -> bool:
    folder = str(path.parent)
    ignored = NOT_NEEDED(folder, [path.name, *path.parts[-4:-1]])
    return bool(ignored) or path.name == "direct_url.json"


def _home(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{name} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def _required(*names: str) -> list[metadata.Distribution]:
    """The distributions and all that they require without extras."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        key = waiting.pop()
        if key.lower().replace("_", "-") in found:
            continue
        distribution = _installed(key)
        found[key.lower().replace("_", "-")] = distribution
        for line in distribution.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return list(found.values())


@cache
def _fingerprint() -> str:
    """Changes with the code and the versions that the zipapp is made of."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}{sys.platform}".encode())
    for distribution in sorted(_required(*CARRIED), key=lambda d: d.name):
        digest.update(f"{distribution.name}=={distribution.version}\n".encode())
    for name in OWN:
        home = _home(name)
        for path in sorted(home.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                stat = path.stat()
                line = f"{name}/{path.relative_to(home)} {stat.st_size} {stat.st_mtime_ns}\n"
                digest.update(line.encode())
    return digest.hexdigest()[:16]


def _installed(name: str) -> metadata.Distribution:
    """The one that was installed, rather than what a build left in a checkout (an `egg-info`)."""
    found = list(metadata.distributions(name=name))
    if not found:
        raise metadata.PackageNotFoundError(name)
    return next((one for one in found if one.read_text("METADATA")), found[0])


if __name__ == "__main__":
    os.nice(10)
    build(Path(sys.argv[1]))
