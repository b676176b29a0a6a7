"""One JSON text to one row: everything JSON allows and nothing more, with the reason in words."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from parsyn.rows.encodings import narrow_encoding
from parsyn.rows.problems import BadRow, ProblemCode

Values = dict[str, Any]

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_INNER_DEPTH = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_object(text: str, depth: int) -> Values:
    """The JSON object in `text` (decoded with `surrogateescape`). Raises `BadRow`."""
    if not text.isascii():
        refuse_wrong_bytes(text)
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep(depth) from None
    except ValueError as error:
        raise _invalid(text, error) from None
    check_values(value, text, depth)
    if not isinstance(value, dict):
        raise BadRow(
            ProblemCode.NOT_AN_OBJECT,
            f"This row is {kind_of(value)}, not a JSON object. Write each row as "
            '{"column": value, …}.',
        )
    return value


def scan_object(text: str, at: int) -> tuple[Values, int] | None:
    """The JSON object that starts at `at` and where it ends; None for anything that is not one."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (BadRow, RecursionError, ValueError):
        return None
    return (value, end) if isinstance(value, dict) else None


def check_object(value: Values, text: str, depth: int) -> Values:
    """What `parse_object` does after parsing."""
    if not text.isascii():
        refuse_wrong_bytes(text)
    check_values(value, text, depth)
    return value


def loads(text: str) -> Any:
    """JSON text inside a value, held to the same rules as a row. Raises `ValueError`."""
    try:
        value = _DECODER.decode(text)
        check_values(value, text, _INNER_DEPTH)
    except (BadRow, RecursionError) as error:
        raise ValueError(str(error)) from None
    return value


def refuse_wrong_bytes(text: str) -> None:
    encoding = narrow_encoding(text)
    if encoding is not None:
        raise BadRow(
            ProblemCode.WRONG_ENCODING,
            f"These bytes are not UTF-8; they look like {encoding}. Save the file as UTF-8.",
        )


def check_values(value: Any, text: str, depth: int) -> None:
    """Refuses what JSON text can smuggle into strings, and nesting beyond `depth`."""
    if _SURROGATE_ESCAPE.search(text):
        _refuse_in_strings(
            value,
            _SURROGATE,
            ProblemCode.LONE_SURROGATE,
            r"holds half of a surrogate pair (\ud800 to \udfff), which is no character. Remove it.",
        )
    if "\\u0000" in text:
        _refuse_in_strings(
            value,
            re.compile("\0"),
            ProblemCode.NUL_BYTE,
            "holds a NUL character (\\u0000). Remove it.",
        )
    if text.count("[") + text.count("{") > depth and _depth(value) > depth:
        raise _too_deep(depth)


def kind_of(value: Any) -> str:
    """The JSON name of a value's type, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list"


def _refuse_constant(name: str) -> NoReturn:
    raise BadRow(
        ProblemCode.NON_FINITE_NUMBER,
        f"{name} is not a JSON number. Write null or leave the row out.",
    )


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        _refuse_constant(digits if len(digits) < 20 else digits[:20] + "…")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)


def _invalid(text: str, error: ValueError) -> BadRow:
    if "\0" in text:
        return BadRow(ProblemCode.NUL_BYTE, "The row holds a NUL byte. Remove it.")
    if isinstance(error, json.JSONDecodeError):
        what = f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos + 1}"
    else:
        what = "a number has too many digits"
    return BadRow(ProblemCode.INVALID_JSON, f"This is not valid JSON: {what}. Repair the row.")


def _too_deep(depth: int) -> BadRow:
    return BadRow(
        ProblemCode.TOO_DEEP, f"The row is nested deeper than {depth} levels. Flatten it."
    )


def _refuse_in_strings(
    value: Any, pattern: re.Pattern[str], code: ProblemCode, message: str
) -> None:
    columns = value.items() if isinstance(value, dict) else [(None, value)]
    for column, inner in columns:
        stack = [column, inner]
        while stack:
            item = stack.pop()
            if isinstance(item, str) and pattern.search(item):
                raise BadRow(code, f"The value {message}", column)
            if isinstance(item, dict):
                stack += item.keys()
                stack += item.values()
            elif isinstance(item, list):
                stack += item


def _depth(value: Any) -> int:
    deepest = 0
    stack = [(value, 1)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        children = item.values() if isinstance(item, dict) else item
        if isinstance(item, dict | list):
            stack += [(child, level + 1) for child in children if isinstance(child, dict | list)]
    return deepest
