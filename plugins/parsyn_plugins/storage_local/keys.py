"""Which keys are allowed, and which file a key names."""

from __future__ import annotations

from pathlib import Path

from parsyn.errors import ErrorCode, ParsynError, not_found

WORK = ".work"
"""The folder of half-written files; no key may lie in it."""
LONGEST_NAME = 255
LONGEST_KEY = 1024


def checked(key: str) -> str:
    """The key itself, or ParsynError `malformed` that says what is wrong with it."""
    why = _objection(key)
    if why:
        raise ParsynError(ErrorCode.MALFORMED, f"The storage key {key[:200]!r} is refused: {why}.")
    return key


def _objection(key: str) -> str | None:
    names = key.split("/")
    if not key:
        return "it is empty"
    if len(key.encode("utf-8", "surrogatepass")) > LONGEST_KEY:
        return f"it is longer than {LONGEST_KEY} bytes"
    if any(ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) < 0xE000 for sign in key):
        return "it holds a control character"
    if "\\" in key:
        return "it holds a backslash"
    if any(name in ("", ".", "..") for name in names):
        return "it must be relative, with no empty part, `.` or `..`"
    if names[0] == WORK:
        return f"`{WORK}` is kept for half-written files"
    if any(len(name.encode()) > LONGEST_NAME for name in names):
        return f"a part of it is longer than {LONGEST_NAME} bytes"
    return None


def path_of(root: Path, key: str) -> Path:
    """The file of `key` below `root` (resolved). A link that leads out of it is not followed."""
    path = root.joinpath(*checked(key).split("/"))
    if path.is_symlink() or not path.parent.resolve().is_relative_to(root):
        raise not_found(f"object as {key!r}")
    return path
