"""Filters of a query string, checked."""

from __future__ import annotations

from collections.abc import Sequence

from quart import request

from parsyn.errors import invalid
from parsyn.hub.routing import LARGEST_ID, integer

IN_PROJECT = "Only of this project."
IN_NAME = "A part of the name."


def optional_id(name: str) -> int | None:
    """An id, or None where it was not given. Raises 422."""
    return integer(name, 0, 1, LARGEST_ID) if request.args.get(name) else None


def choice(name: str, known: Sequence[str]) -> str:
    """One of a closed set, or "" where it was not given. Raises 422 that names them."""
    value = request.args.get(name, "")
    if value:
        _require_known(name, value, known)
    return value


def choices(name: str, known: Sequence[str]) -> list[str]:
    """Some of a closed set, with commas; none where it was not given. Raises 422."""
    values = [value for value in request.args.get(name, "").split(",") if value]
    for value in values:
        _require_known(name, value, known)
    return values


def _require_known(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        message = f"{name} must be one of {', '.join(known)}, not {value[:60]!r}."
        raise invalid(["query", name], message)


def search_text() -> str:
    """`?q=` or `?search=`: what the name must contain."""
    asked = request.args.get("q") or request.args.get("search", "")
    return asked.replace("\0", "").strip()
