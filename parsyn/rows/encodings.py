"""Names the encoding of bytes that are not UTF-8."""

from __future__ import annotations

import re

_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32 (little endian)"),
    (b"\x00\x00\xfe\xff", "UTF-32 (big endian)"),
    (b"\xff\xfe", "UTF-16 (little endian)"),
    (b"\xfe\xff", "UTF-16 (big endian)"),
)
_ESCAPED = re.compile("[\udc80-\udcff]+")


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32, by its mark or by the pattern of its NUL bytes; else None."""
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    sample = head[:4096]
    quarter = len(sample) // 4
    if quarter == 0:
        return None
    nuls = [sample[place::4].count(0) / quarter for place in range(4)]
    high = [share > 0.7 for share in nuls]
    if high == [False, True, True, True]:
        return "UTF-32 (little endian)"
    if high == [True, True, True, False]:
        return "UTF-32 (big endian)"
    if high == [False, True, False, True]:
        return "UTF-16 (little endian)"
    if high == [True, False, True, False]:
        return "UTF-16 (big endian)"
    return None


def narrow_encoding(text: str) -> str | None:
    """Guesses what `text`, decoded with `surrogateescape`, was; None when it was UTF-8."""
    runs: list[str] = _ESCAPED.findall(text)
    if not runs:
        return None
    if sum(len(run) for run in runs) >= 2 * len(runs):
        return "in another encoding (perhaps GB18030, Big5, Shift-JIS or Windows-1251)"
    windows = any(ord(char) < 0xDCA0 for run in runs for char in run)
    return "Windows-1252" if windows else "Latin-1 (ISO-8859-1)"
