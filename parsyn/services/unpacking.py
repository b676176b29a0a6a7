"""Reading a back-up: everything is checked before anything of it is believed."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import zstandard
from pydantic import TypeAdapter, ValidationError

from parsyn.errors import ErrorCode, ParsynError
from parsyn.services.backup import CHUNK, FILES, FORMAT, KEPT_SETTINGS, LAST, MANIFEST, Manifest
from parsyn.store.rows import Layout

MANIFEST_BYTES = 16 * 1024**2
manifests: TypeAdapter[Manifest] = TypeAdapter(Manifest)
TakeFile = Callable[[str, Iterator[bytes]], None]


class Unpacked:
    """An archive whose rows and settings lie in `folder`, every digest as the manifest says."""

    def __init__(self, manifest: Manifest, folder: Path, files: list[dict[str, Any]]) -> None:
        self.manifest, self.folder, self.files = manifest, folder, files

    def rows(self, layout: Layout) -> Iterator[list[Any]]:
        with (self.folder / layout.name).open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def layouts(self, place: str) -> list[Layout]:
        return [
            Layout(entry.name, tuple(entry.columns))
            for entry in self.manifest.tables
            if entry.member.startswith(f"{place}/")
        ]


def unpack(source: Path, folder: Path, take_file: TakeFile) -> Unpacked:
    """Read `source` once: rows and settings into `folder`, each stored file to `take_file`.

    Raises ParsynError `bad_data` for anything that is not a whole back-up.
    """
    try:
        with (
            source.open("rb") as raw,
            zstandard.ZstdDecompressor().stream_reader(raw) as plain,
            tarfile.open(fileobj=plain, mode="r|", bufsize=CHUNK) as archive,
        ):
            return _unpack(archive, folder, take_file, source)
    except FileNotFoundError:
        raise ParsynError(ErrorCode.CONFIG, f"There is no file {source}.") from None
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise broken(source, f"it cannot be read to its end ({error})") from error


def broken(source: Path, why: str) -> ParsynError:
    return ParsynError(ErrorCode.BAD_DATA, f"{source} is not a whole back-up: {why}.")


def _unpack(archive: tarfile.TarFile, folder: Path, take_file: TakeFile, source: Path) -> Unpacked:
    manifest: Manifest | None = None
    seen: dict[str, str] = {}
    listed: list[dict[str, Any]] | None = None
    for member in archive:
        content = archive.extractfile(member)
        if content is None:
            raise broken(source, f"{member.name[:100]} is no file")
        if manifest is None:
            manifest = _manifest(member, content, source)
        elif member.name == LAST:
            listed = json.loads(content.read())
        elif member.name.startswith(FILES):
            take = _Chunks(content)
            take_file(member.name.removeprefix(FILES), iter(take))
            seen[member.name] = take.digest.hexdigest()
        else:
            seen[member.name] = _keep(member.name, content, folder, manifest, source)
    if manifest is None or listed is None:
        raise broken(source, "its end is missing")
    _compare(manifest, listed, seen, source)
    return Unpacked(manifest, folder, listed)


def _manifest(member: tarfile.TarInfo, content: IO[bytes], source: Path) -> Manifest:
    if member.name != MANIFEST or member.size > MANIFEST_BYTES:
        raise broken(source, "it does not begin with a manifest")
    try:
        manifest = manifests.validate_json(content.read())
    except ValidationError:
        raise broken(source, "its manifest is not understood") from None
    if manifest.format > FORMAT:
        raise ParsynError(
            ErrorCode.CONFIG,
            f"{source} was made by a newer Parsyn ({manifest.parsyn}); install that one first.",
        )
    return manifest


def _keep(name: str, content: IO[bytes], folder: Path, manifest: Manifest, source: Path) -> str:
    known = {entry.member: entry.name for entry in manifest.tables}
    known |= {f"settings/{kept}": kept for kept in KEPT_SETTINGS}
    if name not in known:
        raise broken(source, f"nothing called {name[:100]} belongs in it")
    take = _Chunks(content)
    with (folder / known[name]).open("xb") as file:
        for chunk in take:
            file.write(chunk)
    return take.digest.hexdigest()


def _compare(
    manifest: Manifest, listed: list[dict[str, Any]], seen: dict[str, str], source: Path
) -> None:
    wanted = {entry.member: entry.sha256 for entry in manifest.tables}
    wanted |= {f"settings/{name}": digest for name, digest in manifest.settings.items()}
    wanted |= {f"{FILES}{file['key']}": file["sha256"] for file in listed}
    for name, digest in wanted.items():
        if name not in seen:
            raise broken(source, f"{name} is missing")
        if seen[name] != digest:
            raise broken(source, f"{name} is damaged (its SHA-256 differs)")


class _Chunks:
    """A file in chunks; `digest` is that of what was taken."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._file.read(CHUNK):
            self.digest.update(chunk)
            yield chunk
