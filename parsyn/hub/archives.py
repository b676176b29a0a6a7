"""Several stored files as one ZIP, made while it is sent: nothing is written, memory stays flat."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from typing import Protocol

from quart import Response

from parsyn.hub.streaming import ascii_name
from parsyn.plugin.storage import Storage


class Stored(Protocol):
    """A row of a file: where it goes in the archive, and where it lies."""

    path: str
    key: str


class _Sink:
    """What was written since it was last asked; ZIP needs no seeking to be written."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def zip_chunks(storage: Storage, folder: str, files: Sequence[Stored]) -> Iterator[bytes]:
    """The archive's bytes; the files lie in `folder`, stored as they are (weights pack badly)."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for file in files:
            info = zipfile.ZipInfo(f"{folder}/{file.path}")
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=True) as entry:
                for chunk in storage.get(file.key):
                    entry.write(chunk)
                    yield sink.take()
            yield sink.take()
    yield sink.take()


def send_zip(storage: Storage, name: str, files: Sequence[Stored]) -> Response:
    """The files as a download called `name`.zip."""
    folder = ascii_name(name)
    response = Response(zip_chunks(storage, folder, files), mimetype="application/zip")
    response.timeout = None
    response.headers.set("Content-Disposition", "attachment", filename=f"{folder}.zip")
    return response
