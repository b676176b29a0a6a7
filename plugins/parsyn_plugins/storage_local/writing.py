"""Writing files so that a reader, or a power cut, never sees half of one."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from parsyn.errors import ErrorCode, ParsynError

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
TRIES = 50


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what a disk can refuse into ParsynError, one sentence each."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, folder) from error


def _refusal(error: OSError, folder: Path) -> Exception:
    if error.errno in NO_SPACE:
        text = f"The disk of the storage folder {folder} is full: free some space and try again."
    elif error.errno in NO_RIGHT:
        text = f"The storage folder {folder} cannot be written to: check who owns it."
    elif error.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY):
        return ParsynError(
            ErrorCode.CONFLICT,
            "A storage key cannot be both an object and the folder of another.",
        )
    elif error.errno == errno.EIO:
        text = f"The disk of the storage folder {folder} reports errors: check the disk."
    else:
        return error
    return ParsynError(ErrorCode.UNAVAILABLE, text)


def write_synced(path: Path, chunks: Iterable[bytes]) -> tuple[int, str]:
    """Write a new file to the disk itself; its size and SHA-256."""
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as sink:
        for chunk in chunks:
            sink.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        sink.flush()
        os.fsync(sink.fileno())
    return size, digest.hexdigest()


def move_synced(source: Path, target: Path, root: Path) -> None:
    """Rename over `target`, folders included, and make the names as durable as the bytes."""
    for attempt in range(TRIES):
        try:
            _make_folders(target.parent, root)
            source.replace(target)
            break
        except (FileNotFoundError, FileExistsError) as error:
            # A delete next door may have removed the folder that had just become empty, also
            # between the system's "it exists" and the look at what exists.
            if attempt == TRIES - 1 or not source.exists() or _is_in_the_way(error):
                raise
    sync_folder(target.parent)


def _is_in_the_way(error: OSError) -> bool:
    """A file stands where a folder should be."""
    return isinstance(error, FileExistsError) and Path(error.filename).is_file()


def _make_folders(folder: Path, root: Path) -> None:
    if folder == root or folder.is_dir():
        return
    _make_folders(folder.parent, root)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_empty_folders(folder: Path, root: Path) -> None:
    """Remove `folder` and what lies above it, up to `root`, while empty."""
    while folder != root:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
