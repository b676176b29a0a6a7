"""What the values of a column are, judged on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from parsyn.rows.json_values import Values
from parsyn.rows.turns import structured

_MOST = 0.5

Fits = Callable[[Any], bool]


def most(samples: Sequence[Values], column: str, fits: Fits) -> bool:
    """Whether most of the values that are there fit: a few bad rows do not hide a shape."""
    present = [row[column] for row in samples if row.get(column) not in (None, "")]
    return bool(present) and sum(map(fits, present)) > _MOST * len(present)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_speech(value: Any) -> bool:
    """Something a person or a model said: text, a turn, or turns."""
    return isinstance(value, str) or turn_dialect(value) is not None


def turn_dialect(value: Any) -> str | None:
    """ "role" for `role`/`content` turns, "from" for `from`/`value` turns, None for neither."""
    turns = structured(value)
    turns = [turns] if isinstance(turns, dict) else turns
    if not isinstance(turns, list) or not turns:
        return None
    for role_key in ("role", "from"):
        if all(isinstance(turn, dict) and isinstance(turn.get(role_key), str) for turn in turns):
            return role_key
    return None


def is_conversation(value: Any) -> bool:
    return isinstance(structured(value), list) and turn_dialect(value) is not None


def ends_with_answer(value: Any) -> bool:
    turns = structured(value)
    if not is_conversation(value):
        return False
    last = turns[-1]
    return last.get("role", last.get("from")) in ("assistant", "gpt", "model")


def is_ids(value: Any) -> bool:
    numbers = structured(value)
    return isinstance(numbers, list) and all(type(number) is int for number in numbers)


def is_truth(value: Any) -> bool:
    """Says true or false in so many words."""
    return isinstance(value, bool) or (
        isinstance(value, str) and value.strip().casefold() in ("true", "false")
    )


def is_binary(value: Any) -> bool:
    """0 or 1, which may be true and false or the names of two classes."""
    return value in (0, 1) or (isinstance(value, str) and value.strip() in ("0", "1"))


def repeats(samples: Sequence[Values], text: str, columns: Iterable[str]) -> bool:
    """Whether the text column is another rendering of what the other columns say."""
    wanted = list(columns)
    said = 0
    for row in samples:
        if not isinstance(row.get(text), str):
            continue
        leaves = [leaf.strip() for column in wanted for leaf in _leaves(row.get(column))]
        if any(leaf not in row[text] for leaf in leaves):
            return False
        said += len(leaves)
    return said > 0


def _leaves(value: Any) -> list[str]:
    value = structured(value)
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return _leaves(value.get("content", value.get("value")))
    return []
