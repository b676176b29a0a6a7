"""Files by their digest, and folders made of hard links to them; the oldest use goes first."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.refs import FileRef

log = logging.getLogger(__name__)

RESTING = 600.0
"""Seconds for which whatever was used last is safe from eviction, whoever uses this cache."""
CHUNK = 1 << 20


class Cache:
    """`root/blobs/<sha256>` and `root/models/<digest>/`; shared by every agent of a machine."""

    def __init__(self, root: Path, limit: int) -> None:
        self.limit = limit
        self.blobs, self.models = root / "blobs", root / "models"
        for folder in (self.blobs, self.models):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def find(self, file: FileRef) -> Path | None:
        """The file when it is here whole; using it makes it young."""
        path = self.blobs / _digest(file)
        if not path.exists() or path.stat().st_size != file.size:
            return None
        _touch(path)
        return path

    def part(self, file: FileRef) -> Path:
        """Where a download of this file collects its bytes."""
        return self.blobs / f"{_digest(file)}.part"

    def adopt(self, file: FileRef) -> Path:
        """Check the collected bytes and make them a blob. Raises ParsynError on another digest."""
        part = self.part(file)
        found = sha256_of(part)
        if found != file.sha256 or part.stat().st_size != file.size:
            part.unlink()
            raise ParsynError(
                ErrorCode.DIGEST_MISMATCH,
                f"{file.path} arrived with another digest than promised. Its stored copy is"
                " damaged, or something changes files on the way.",
            )
        target = self.blobs / file.sha256
        part.replace(target)
        _touch(target)
        return target

    @contextmanager
    def alone(self, file: FileRef) -> Iterator[bool]:
        """Hold the right to download this file; False while another process has it."""
        with (self.blobs / f"{_digest(file)}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def folder_of(self, files: Sequence[FileRef]) -> Path:
        """Where a folder of these files is, or will be after `assemble`."""
        listing = "\n".join(sorted(f"{_digest(file)} {safe_path(file.path)}" for file in files))
        return self.models / hashlib.sha256(listing.encode()).hexdigest()[:32]

    def assembled(self, files: Sequence[FileRef]) -> Path | None:
        """The folder of these files when it is here; using it makes it young."""
        folder = self.folder_of(files)
        if not folder.is_dir():
            return None
        _touch(folder)
        return folder

    def assemble(self, files: Sequence[FileRef], target: Path | None = None) -> Path:
        """A folder with all `files`, which are blobs already, as hard links where possible."""
        final = target or self.folder_of(files)
        draft = final.with_name(f"{final.name}.{os.getpid()}.{time.time_ns()}")
        for file in files:
            path = draft / safe_path(file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            _link(self.blobs / _digest(file), path)
        try:
            draft.rename(final)
        except OSError:
            # Another task made the same folder meanwhile.
            shutil.rmtree(draft)
        return final

    def make_room(self, wanted: int) -> None:
        """Remove what was used longest ago until `wanted` more bytes fit below the limit."""
        size = sum(path.stat().st_size for path in _files(self.blobs))
        for entry in self._by_age():
            if size + wanted <= self.limit:
                return
            size -= self._remove(entry)

    def _by_age(self) -> list[Path]:
        """Evictable entries, the longest unused first; a blob in a folder goes with the folder."""
        before = time.time() - RESTING
        loose = [path for path in _files(self.blobs) if path.stat().st_nlink == 1]
        entries = [*loose, *(path for path in self.models.iterdir() if path.is_dir())]
        aged = [(path.stat().st_mtime, path) for path in entries]
        return [path for mtime, path in sorted(aged) if mtime < before]

    def _remove(self, entry: Path) -> int:
        """Bytes freed."""
        log.info("Removing %s from the cache; it was unused for longest.", entry.name)
        if entry.is_file():
            size = entry.stat().st_size
            entry.unlink(missing_ok=True)
            return size
        inodes = {path.stat().st_ino for path in entry.rglob("*") if path.is_file()}
        shutil.rmtree(entry, ignore_errors=True)
        freed = 0
        for blob in _files(self.blobs):
            info = blob.stat()
            if info.st_ino in inodes and info.st_nlink == 1:
                blob.unlink(missing_ok=True)
                freed += info.st_size
        return freed


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_path(text: str) -> str:
    """A relative path that stays in its folder. Raises ParsynError for any other."""
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\0" in text or "\\" in text:
        raise ParsynError(ErrorCode.MALFORMED, f"The hub named a file {text!r}, which is no path.")
    return str(path)


def _digest(file: FileRef) -> str:
    if len(file.sha256) != 64 or not set(file.sha256) <= set("0123456789abcdef"):
        raise ParsynError(ErrorCode.MALFORMED, f"The hub sent no digest of {file.path!r}.")
    return file.sha256


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix != ".lock" and path.is_file()]


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _touch(path: Path) -> None:
    os.utime(path)
