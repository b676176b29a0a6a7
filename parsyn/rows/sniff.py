"""What a file is, decided by its bytes; its name only breaks ties and is contradicted in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from parsyn.rows.dialects import PLAIN, Dialect, columns_agree, sniff_dialect
from parsyn.rows.encodings import wide_encoding
from parsyn.rows.problems import Limits, Problem, ProblemCode, Severity, UnusableFile
from parsyn.rows.streams import compression_of, open_stream
from parsyn.wire.states import Compression, FileFormat

HEAD_BYTES = 1 << 17

_FORMAT_OF_SUFFIX = {
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
    ".json": FileFormat.JSON,
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".txt": FileFormat.TEXT,
    ".text": FileFormat.TEXT,
    ".md": FileFormat.TEXT,
}
# White space, and the separators that some CSV files use.
_TEXT_CONTROLS = (1, 9, 10, 12, 13, 28, 29, 30, 31)
_TITLES = {
    FileFormat.JSONL: "JSONL (one JSON object a line)",
    FileFormat.JSON: "a JSON array or document",
    FileFormat.CSV: "CSV",
    FileFormat.PARQUET: "Parquet",
    FileFormat.TEXT: "plain text",
}
_FOREIGN = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an Excel or Word document)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word document"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"GGUF", "a GGUF model"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x1f\x8b", "a gzip file inside a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file inside a compressed file"),
    (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer, not the file itself"),
)


@dataclass(frozen=True, slots=True)
class Sniffed:
    """How to read the file: `dialect` is for CSV, `paragraphs` for the rows of plain text."""

    file_format: FileFormat
    compression: Compression = Compression.NONE
    dialect: Dialect = PLAIN
    paragraphs: bool = False
    warnings: tuple[Problem, ...] = ()


def sniff(path: Path, filename: str, limits: Limits | None = None) -> Sniffed:
    """Raises `UnusableFile` when the file is empty, of a foreign kind, damaged, or not UTF-8."""
    with path.open("rb") as file:
        compression = compression_of(file.read(8))
    with open_stream(path, compression, limits or Limits()) as stream:
        head = stream.read(HEAD_BYTES)
    named = _named_format(filename)
    _refuse_foreign(head, filename, named)
    if head.startswith(b"PAR1"):
        return Sniffed(
            FileFormat.PARQUET, compression, warnings=_mismatch(filename, named, FileFormat.PARQUET)
        )
    text = head.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    whole = len(head) < HEAD_BYTES
    found = _text_format(text, named, whole)
    return Sniffed(
        found,
        compression,
        dialect=sniff_dialect(text, whole=whole) if found is FileFormat.CSV else PLAIN,
        paragraphs=found is FileFormat.TEXT and "\n\n" in text.replace("\r\n", "\n").strip(),
        warnings=_mismatch(filename, named, found),
    )


def _named_format(filename: str) -> FileFormat | None:
    name = filename.lower()
    for suffix in (".gz", ".gzip", ".zst", ".zstd"):
        name = name.removesuffix(suffix)
    return _FORMAT_OF_SUFFIX.get(Path(name).suffix)


def _refuse_foreign(head: bytes, filename: str, named: FileFormat | None) -> None:
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise UnusableFile(
            ProblemCode.EMPTY_FILE, "The file is empty. Upload a file with at least one row."
        )
    for magic, title in _FOREIGN:
        if head.startswith(magic):
            raise _foreign(filename, title)
    if (encoding := wide_encoding(head)) is not None:
        raise UnusableFile(
            ProblemCode.WRONG_ENCODING,
            f"The file is {encoding}, from line 1 on. Save it as UTF-8 and upload it again.",
            line=1,
        )
    is_markup = head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))
    if is_markup and named is not FileFormat.TEXT:
        raise _foreign(filename, "an HTML page, perhaps an error page saved by a download")
    if not head.startswith(b"PAR1") and _looks_binary(head):
        raise _foreign(filename, "binary data")


def _looks_binary(head: bytes) -> bool:
    sample = head[:8192]
    controls = sum(sample.count(bytes([code])) for code in range(32) if code not in _TEXT_CONTROLS)
    return controls > len(sample) // 20


def _foreign(filename: str, title: str) -> UnusableFile:
    return UnusableFile(
        ProblemCode.UNSUPPORTED_FILE,
        f'"{filename}" is {title}. Upload JSONL, a JSON array, CSV, Parquet or plain text, '
        "as it is or compressed with gzip or zstd.",
    )


def _text_format(text: str, named: FileFormat | None, whole: bool) -> FileFormat:
    start = text.lstrip()
    if start.startswith("[") and _opens_array(start):
        return FileFormat.JSON
    if start.startswith("{"):
        return _object_format(start, named, whole)
    if named in (FileFormat.CSV, FileFormat.TEXT):
        return named
    if columns_agree(text, whole=whole):
        return FileFormat.CSV
    return named if named in (FileFormat.JSON, FileFormat.JSONL) else FileFormat.TEXT


def _opens_array(start: str) -> bool:
    inside = start[1:].lstrip()
    return not inside or inside[0] in '{]["-0123456789tfnNI'


def _object_format(start: str, named: FileFormat | None, whole: bool) -> FileFormat:
    line, newline, _ = start.partition("\n")
    if _is_json_object(line) or (not newline and not whole):
        return FileFormat.JSONL
    second = start[1:].lstrip()
    if named is FileFormat.JSONL and line.rstrip().endswith("}"):
        return FileFormat.JSONL
    if second.startswith(('"', "}")) and named is not FileFormat.TEXT:
        return (
            FileFormat.JSON if line.strip() == "{" or named is FileFormat.JSON else FileFormat.JSONL
        )
    return named if named is not None and named is not FileFormat.PARQUET else FileFormat.TEXT


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _mismatch(filename: str, named: FileFormat | None, found: FileFormat) -> tuple[Problem, ...]:
    if named is None or named is found:
        return ()
    message = (
        f'"{filename}" is named like {_TITLES[named]} but holds {_TITLES[found]}. '
        f"It was read as {_TITLES[found]}; rename it to be rid of this note."
    )
    return (Problem(ProblemCode.FORMAT_MISMATCH, message, severity=Severity.WARNING),)
