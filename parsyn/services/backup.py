"""One archive with everything that a hub keeps: rows, metrics, settings, secret key, files.

A `.tar.zst` whose first member is the manifest and whose last one lists the files. Rows are one
JSON array a line.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import zstandard

from parsyn import __version__
from parsyn.config import Settings
from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.storage import Storage
from parsyn.store.rows import Layout, Read, core_layouts, metric_layouts, snapshot

FORMAT = 1
MANIFEST, FILES, LAST = "manifest.json", "files/", "files.json"
KEPT_SETTINGS = ("parsyn.toml", "secret.key")
CHUNK = 1 << 20


@dataclass(frozen=True)
class TableEntry:
    """One table of the archive; `sha256` is that of its member."""

    name: str
    columns: list[str]
    rows: int
    sha256: str
    member: str


@dataclass(frozen=True)
class Manifest:
    """What an archive holds. `files` is whether stored files are in it."""

    format: int
    parsyn: str
    made_at: str
    database: str
    schema: list[str]
    tables: list[TableEntry]
    settings: dict[str, str]
    files: bool


@dataclass
class Written:
    """What was written: counts and bytes."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    missing: list[str] = field(default_factory=list)


def write(
    target: Path, settings: Settings, storage: Storage | None, schema: list[str]
) -> tuple[Manifest, Written]:
    """Write the archive (0600); `storage` None leaves the files out. A hub may run meanwhile.

    Raises ParsynError where `target` exists or cannot be written.
    """
    if target.exists():
        raise ParsynError(ErrorCode.CONFIG, f"{target} exists already; name another file.")
    partial = target.with_name(f"{target.name}.partial")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="parsyn-backup-", dir=target.parent) as folder,
            _archive(partial) as archive,
        ):
            result = _fill(archive, Path(folder), settings, storage, schema)
        partial.replace(target)
    except OSError as error:
        raise ParsynError(
            ErrorCode.UNAVAILABLE, f"{target} cannot be written: {error.strerror}."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return result


@contextmanager
def _archive(path: Path) -> Iterator[tarfile.TarFile]:
    path.touch(mode=0o600)
    with (
        path.open("wb") as raw,
        zstandard.ZstdCompressor(level=3).stream_writer(raw) as packed,
        tarfile.open(fileobj=packed, mode="w|", bufsize=CHUNK) as archive,
    ):
        yield archive


def _fill(
    archive: tarfile.TarFile,
    folder: Path,
    settings: Settings,
    storage: Storage | None,
    schema: list[str],
) -> tuple[Manifest, Written]:
    url = settings.text("hub.database")
    with snapshot(url, settings.data_dir) as read:
        tables = [
            _dump(read, layout, folder, place)
            for place, layouts in (("rows", core_layouts()), ("metrics", metric_layouts()))
            for layout in layouts
        ]
    kept = {name: settings.data_dir / name for name in KEPT_SETTINGS}
    contents = {name: path.read_bytes() for name, path in kept.items() if path.exists()}
    manifest = Manifest(
        format=FORMAT,
        parsyn=__version__,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        database="sqlite" if url == "sqlite" else "postgresql",
        schema=schema,
        tables=tables,
        settings={name: hashlib.sha256(body).hexdigest() for name, body in contents.items()},
        files=storage is not None,
    )
    _add_bytes(archive, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
    for name, body in contents.items():
        _add_bytes(archive, f"settings/{name}", body)
    for entry in tables:
        dumped = folder / entry.name
        with dumped.open("rb") as file:
            _add(archive, entry.member, file, dumped.stat().st_size)
    written = Written(rows=sum(entry.rows for entry in tables))
    stored = _add_files(archive, storage, written) if storage is not None else []
    _add_bytes(archive, LAST, json.dumps(stored).encode())
    return manifest, written


def _dump(read: Read, layout: Layout, folder: Path, place: str) -> TableEntry:
    member = f"{place}/{layout.name}.jsonl"
    digest, count = hashlib.sha256(), 0
    with (folder / layout.name).open("wb") as file:
        for row in read(layout):
            line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
            file.write(line)
            digest.update(line)
            count += 1
    return TableEntry(layout.name, list(layout.columns), count, digest.hexdigest(), member)


def _add_files(
    archive: tarfile.TarFile, storage: Storage, written: Written
) -> list[dict[str, Any]]:
    """Every stored object. One that is deleted meanwhile is left out and named."""
    stored: list[dict[str, Any]] = []
    for info in storage.list(""):
        try:
            source = _Digesting(storage.get(info.key))
        except ParsynError as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            written.missing.append(info.key)
            continue
        _add(archive, f"{FILES}{info.key}", io.BufferedReader(source, CHUNK), info.size)
        stored.append({"key": info.key, "size": info.size, "sha256": source.digest.hexdigest()})
        written.files += 1
        written.bytes += info.size
    return stored


class _Digesting(io.RawIOBase):
    """Chunks as a file; what was read is in `digest`."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, memoryview(b"")
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self.digest.update(self._rest[:size])
        self._rest = self._rest[size:]
        return size


def _add_bytes(archive: tarfile.TarFile, name: str, body: bytes) -> None:
    _add(archive, name, io.BytesIO(body), len(body))


def _add(archive: tarfile.TarFile, name: str, source: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    member.mtime = datetime.now(UTC).timestamp()
    archive.addfile(member, source)
