"""The storage itself."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field

from parsyn.errors import ErrorCode, ParsynError, not_found
from parsyn.plugin.params import PluginParams
from parsyn.plugin.storage import ObjectInfo, Storage
from parsyn_plugins.storage_local import joining, writing
from parsyn_plugins.storage_local.keys import WORK, checked, path_of

CHUNK = 1 << 20
STALE_SECONDS = 24 * 3600


class LocalSettings(PluginParams):
    folder: str = Field(
        default="storage",
        title="Folder",
        description="Where the files live: relative to the data directory, or absolute.",
    )


class LocalStorage(Storage):
    """One folder; an object is a file whose path is its key."""

    name = "local"
    Settings = LocalSettings

    def __init__(self, settings: PluginParams, data_dir: Path) -> None:
        folder = settings.folder if isinstance(settings, LocalSettings) else "storage"
        self.root = (data_dir / folder).resolve()
        self.work = self.root / WORK
        with writing.disk_errors(self.root):
            self.work.mkdir(parents=True, exist_ok=True)

    def put(self, key: str, chunks: Iterable[bytes]) -> ObjectInfo:
        target = self._path(key)
        temporary = self.work / f"{uuid.uuid4().hex}.put"
        try:
            with writing.disk_errors(self.root):
                size, digest = writing.write_synced(temporary, chunks)
                writing.move_synced(temporary, target, self.root)
        finally:
            temporary.unlink(missing_ok=True)
        return ObjectInfo(key, size, digest)

    def get(self, key: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        if offset < 0 or (length is not None and length < 0):
            raise ParsynError(ErrorCode.MALFORMED, "Offset and length must not be negative.")
        self.stat(key)
        return self._chunks(key, offset, length)

    def _chunks(self, key: str, offset: int, length: int | None) -> Iterator[bytes]:
        left = length if length is not None else 1 << 62
        with self.as_file(key) as path, path.open("rb") as source:
            source.seek(offset)
            while left > 0 and (chunk := source.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk

    def stat(self, key: str) -> ObjectInfo:
        with self.as_file(key) as path:
            return ObjectInfo(key, path.stat().st_size)

    def delete(self, key: str) -> None:
        path = self._path(key)
        with writing.disk_errors(self.root):
            try:
                path.unlink(missing_ok=True)
            except (IsADirectoryError, NotADirectoryError, PermissionError):
                if not path.is_dir() and path.exists():
                    raise
                return
        writing.remove_empty_folders(path.parent, self.root)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        prefix = prefix.rstrip("/")
        folder = self.root.joinpath(*checked(prefix).split("/")) if prefix else self.root
        if folder.resolve().is_relative_to(self.root):
            yield from self._walk(folder)

    def _walk(self, folder: Path) -> Iterator[ObjectInfo]:
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in sorted(entries, key=_key_order):
            if entry.is_dir(follow_symlinks=False):
                if Path(entry.path) != self.work:
                    yield from self._walk(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                key = Path(entry.path).relative_to(self.root).as_posix()
                try:
                    yield ObjectInfo(key, entry.stat(follow_symlinks=False).st_size)
                except FileNotFoundError:
                    continue

    @contextmanager
    def as_file(self, key: str) -> Iterator[Path]:
        path = self._path(key)
        if not path.is_file():
            raise not_found(f"object as {key!r}")
        yield path

    def concatenate(self, keys: Iterable[str], target: str) -> ObjectInfo:
        parts = list(keys)
        if not parts or target in parts or len(set(parts)) != len(parts):
            raise ParsynError(
                ErrorCode.MALFORMED, "Join at least one object, each once, into another key."
            )
        with writing.disk_errors(self.root):
            size, digest = joining.join_parts(self.root, self.work, parts, target, self._path)
        for key in parts:
            writing.remove_empty_folders(self._path(key).parent, self.root)
        return ObjectInfo(target, size, digest)

    def check(self) -> None:
        probe = self.work / f"{uuid.uuid4().hex}.check"
        try:
            with writing.disk_errors(self.root):
                self.work.mkdir(parents=True, exist_ok=True)
                writing.write_synced(probe, [b"\0" * 4096])
        finally:
            probe.unlink(missing_ok=True)
        self._forget_stale()

    def _forget_stale(self) -> None:
        """Half-written files of processes that died, and journals of joinings that ended."""
        for path in self.work.iterdir():
            try:
                old = time.time() - path.stat().st_mtime > STALE_SECONDS
                if old and path.suffix != ".join" and not path.with_suffix(".join").exists():
                    path.unlink()
            except FileNotFoundError:
                continue

    def _path(self, key: str) -> Path:
        return path_of(self.root, key)


def _key_order(entry: os.DirEntry[str]) -> str:
    return entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
