"""Join parts into one object without needing the space of both.

The first part becomes the joined file by a rename, each further one is appended and then deleted.
A journal with the parts' sizes, written first, makes the work resumable after a crash or a full
disk: the joined file is cut back to the start of the first part that still exists. The journal
stays a while, so that the same joining asked for twice gives the same answer twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from parsyn.errors import not_found
from parsyn_plugins.storage_local.writing import move_synced, sync_folder, write_synced

CHUNK = 1 << 20
PathOf = Callable[[str], Path]


def join_parts(
    root: Path, work: Path, keys: Sequence[str], target: str, path_of: PathOf
) -> tuple[int, str]:
    """Size in bytes and SHA-256 of the joined object at `target`; the parts are gone."""
    name = hashlib.sha256(target.encode()).hexdigest()
    joined, journal = work / f"{name}.join", work / f"{name}.json"
    parts = [path_of(key) for key in keys]
    sizes = _sizes(journal, joined, keys, parts, path_of(target))
    digest, offset = hashlib.sha256(), 0
    if not joined.exists() and not parts[0].exists():
        joined = path_of(target)
    for part, size in zip(parts, sizes, strict=True):
        if part.exists():
            _append(joined, offset, part)
        _hash_range(digest, joined, offset, size)
        offset += size
    if joined != path_of(target):
        move_synced(joined, path_of(target), root)
    return offset, digest.hexdigest()


def _sizes(
    journal: Path, joined: Path, keys: Sequence[str], parts: Sequence[Path], target: Path
) -> list[int]:
    """The parts' sizes, from an earlier try's journal where that try had begun to consume them."""
    missing = [key for key, part in zip(keys, parts, strict=True) if not part.is_file()]
    if not missing:
        return _begin(journal, joined, keys, parts)
    sizes = _earlier(journal, keys)
    if sizes is None or not _covered(sizes, parts, joined if joined.exists() else target):
        raise not_found(f"object as {missing[0]!r}")
    return sizes


def _begin(journal: Path, joined: Path, keys: Sequence[str], parts: Sequence[Path]) -> list[int]:
    sizes = [part.stat().st_size for part in parts]
    joined.unlink(missing_ok=True)
    journal.unlink(missing_ok=True)
    write_synced(journal, [json.dumps({"keys": list(keys), "sizes": sizes}).encode()])
    sync_folder(journal.parent)
    return sizes


def _earlier(journal: Path, keys: Sequence[str]) -> list[int] | None:
    try:
        saved = json.loads(journal.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return [int(size) for size in saved["sizes"]] if saved["keys"] == list(keys) else None


def _covered(sizes: Sequence[int], parts: Sequence[Path], holder: Path) -> bool:
    """Whether what is missing of the parts is in `holder`, which was filled in order."""
    present = [part.exists() for part in parts]
    consumed = present.index(True) if True in present else len(parts)
    if any(not there for there in present[consumed:]) or not holder.is_file():
        return False
    left = zip(parts[consumed:], sizes[consumed:], strict=True)
    return holder.stat().st_size >= sum(sizes[:consumed]) and all(
        part.stat().st_size == size for part, size in left
    )


def _append(joined: Path, offset: int, part: Path) -> None:
    if offset == 0:
        part.replace(joined)
        sync_folder(joined.parent)
        return
    with joined.open("r+b") as sink, part.open("rb") as source:
        sink.truncate(offset)
        sink.seek(offset)
        while chunk := source.read(CHUNK):
            sink.write(chunk)
        sink.flush()
        os.fsync(sink.fileno())
    part.unlink()


def _hash_range(digest: hashlib._Hash, path: Path, offset: int, size: int) -> None:
    with path.open("rb") as source:
        source.seek(offset)
        while size > 0 and (chunk := source.read(min(CHUNK, size))):
            digest.update(chunk)
            size -= len(chunk)
