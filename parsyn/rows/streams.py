"""A dataset file as one stream of decompressed bytes, bounded and with flat memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from parsyn.rows.problems import Limits, ProblemCode, UnusableFile
from parsyn.wire.states import Compression

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A few bytes of zstd can stand for a whole 128 KiB block: small bites bound what a bomb unpacks.
_ZSTD_BITE = 2048
_ZSTD_WINDOW = 1 << 27


def compression_of(head: bytes) -> Compression:
    """By the first bytes, never by the name."""
    if head.startswith(GZIP_MAGIC):
        return Compression.GZIP
    if head.startswith(ZSTD_MAGIC):
        return Compression.ZSTD
    return Compression.NONE


def open_stream(path: Path, compression: Compression, limits: Limits) -> io.BufferedReader:
    """The decompressed bytes. Reading raises `UnusableFile` on damage and beyond the limit."""
    file = path.open("rb")
    if compression is Compression.GZIP:
        pieces = _gunzip(file)
    elif compression is Compression.ZSTD:
        pieces = _unzstd(file)
    else:
        pieces = iter(lambda: file.read(1 << 18), b"")
    return io.BufferedReader(_Bounded(file, pieces, limits.total_bytes), 1 << 18)


class _Bounded(io.RawIOBase):
    def __init__(self, file: IO[bytes], pieces: Iterator[bytes], total: int) -> None:
        self._file = file
        self._pieces = pieces
        self._total = total
        self._seen = 0
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._count(len(piece))
            self._rest = memoryview(piece)
        view = memoryview(buffer).cast("B")
        taken = min(len(view), len(self._rest))
        view[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken

    def _count(self, size: int) -> None:
        self._seen += size
        if self._seen > self._total:
            raise UnusableFile(
                ProblemCode.FILE_TOO_LARGE,
                f"The file holds more than {self._total:,} bytes once decompressed. "
                "Split it into smaller files.",
            )

    def close(self) -> None:
        self._file.close()
        super().close()


def _gunzip(file: IO[bytes]) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            yield from iter(lambda: stream.read(1 << 18), b"")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged("gzip") from error


def _unzstd(file: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = decompressor.decompressobj()
    started = False
    try:
        while bite := file.read(_ZSTD_BITE):
            while bite:
                if frame.eof:
                    frame = decompressor.decompressobj()
                started = True
                piece = frame.decompress(bite)
                if piece:
                    yield piece
                bite = frame.unused_data if frame.eof else b""
    except zstandard.ZstdError as error:
        raise _damaged("zstd") from error
    if started and not frame.eof:
        raise _damaged("zstd")


def _damaged(kind: str) -> UnusableFile:
    return UnusableFile(
        ProblemCode.DAMAGED_FILE,
        f"The {kind} data is damaged or cut off. Compress the file again and upload it once more.",
    )
