"""Rows of JSONL, and of JSON arrays of any length read through a sliding buffer."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator

from parsyn.rows.json_values import Values, check_object, parse_object, scan_object
from parsyn.rows.lines import numbered_lines
from parsyn.rows.problems import BadRow, Limits, ProblemCode, UnusableFile

Numbered = tuple[int, int | None, Values | BadRow]

_CHUNK = 1 << 18
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_SCALAR_END = re.compile(r"[,\]}\s]")


def read_jsonl(stream: io.BufferedReader, limits: Limits) -> Iterator[Numbered]:
    """(row, line, values or what is wrong with them), blank lines left out."""
    row = 0
    for line, raw in numbered_lines(stream, limits.row_bytes):
        if raw is not None and not raw.strip():
            continue
        row += 1
        yield row, line, _parse_line(raw, limits)


def _parse_line(raw: bytes | None, limits: Limits) -> Values | BadRow:
    if raw is None:
        return row_too_large(limits.row_bytes)
    try:
        return parse_object(raw.decode("utf-8", "surrogateescape").strip(), limits.depth)
    except BadRow as bad:
        return bad


def row_too_large(limit: int) -> BadRow:
    return BadRow(
        ProblemCode.ROW_TOO_LARGE,
        f"The row is larger than {limit:,} bytes. Split it or leave it out.",
    )


def read_json(stream: io.BufferedReader, limits: Limits) -> Iterator[Numbered]:
    """The elements of one top-level array, or JSON documents one after the other."""
    buffer = _Buffer(stream, limits.row_bytes)
    is_array = buffer.peek() == "["
    if is_array:
        buffer.advance(1)
    row = 0
    while (char := buffer.peek()) != "":
        if is_array and char == "]":
            buffer.advance(1)
            _expect_end(buffer)
            return
        if char == ",":
            buffer.advance(1)
            continue
        row += 1
        line = buffer.line
        element, value = buffer.take_element(row)
        yield row, line, _parse_element(element, value, limits)
    if is_array:
        raise _cut_off(row, buffer.line)


def _parse_element(element: str, value: Values | None, limits: Limits) -> Values | BadRow:
    if len(element) > limits.row_bytes:
        return row_too_large(limits.row_bytes)
    try:
        if value is not None:
            return check_object(value, element, limits.depth)
        return parse_object(element, limits.depth)
    except BadRow as bad:
        return bad


def _expect_end(buffer: _Buffer) -> None:
    if buffer.peek() != "":
        raise UnusableFile(
            ProblemCode.TRAILING_DATA,
            "There is more text after the end of the JSON array. Put all rows in one array.",
            line=buffer.line,
        )


def _cut_off(row: int, line: int) -> UnusableFile:
    return UnusableFile(
        ProblemCode.TRUNCATED,
        "The JSON ends in the middle: a quote or bracket that opens here never closes, or the file "
        "was cut off. Repair it or upload it again, whole.",
        row=row,
        line=line,
    )


class _Buffer:
    """Decoded text from the stream; what was taken is dropped as reading goes on."""

    def __init__(self, stream: io.BufferedReader, row_limit: int) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._row_limit = row_limit
        self._text = ""
        self._at = 0
        self._ended = False
        self.line = 1
        self._fill()
        self._text = self._text.removeprefix("\ufeff")

    def peek(self) -> str:
        """The next character that is no space, or "" at the end; `line` is then its line."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self.advance((match.end() if match else self._at) - self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def advance(self, count: int) -> None:
        self.line += self._text.count("\n", self._at, self._at + count)
        self._at += count

    def take_element(self, row: int) -> tuple[str, Values | None]:
        """The text of the element that starts here, and its value when that is known already."""
        value = None
        if scanned := scan_object(self._text, self._at):
            value, end = scanned
        else:
            end = self._element_end(row)
        element = self._text[self._at : end]
        self.advance(end - self._at)
        return element, value

    def _element_end(self, row: int) -> int:
        """By its brackets, so that a broken element does not take the next ones with it."""
        if self._text[self._at] not in '{["':
            return self._scalar_end(row)
        depth, at = 0, self._at
        while True:
            for match in _STRING_OR_BRACKET.finditer(self._text, at):
                piece = match[0]
                if piece == '"':  # a string that does not end within the buffer
                    break
                at = match.end()
                depth += (piece in "[{") - (piece in "]}")
                if depth <= 0:
                    return at
            at = self._grow(at, row)

    def _scalar_end(self, row: int) -> int:
        at = self._at + 1
        while (match := _SCALAR_END.search(self._text, at)) is None:
            at = len(self._text)
            if self._ended:
                return at
            at = self._grow(at, row)
        return match.start()

    def _grow(self, at: int, row: int) -> int:
        """Reads on, keeping the element; returns where `at` went."""
        kept = at - self._at
        if len(self._text) - self._at > self._row_limit:
            problem = row_too_large(self._row_limit)
            raise UnusableFile(problem.code, problem.message, row=row, line=self.line)
        # Doubling keeps the work on an element of any size linear.
        if not self._fill(max(_CHUNK, len(self._text) - self._at)):
            raise _cut_off(row, self.line)
        return self._at + kept

    def _fill(self, size: int = _CHUNK) -> bool:
        if self._ended:
            return False
        raw = self._stream.read(size)
        self._ended = len(raw) < size
        text = self._decoder.decode(raw, self._ended)
        self._text = self._text[self._at :] + text
        self._at = 0
        return bool(text)
