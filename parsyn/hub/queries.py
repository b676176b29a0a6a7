"""Filters of a query string, checked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

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


def moment(name: str) -> datetime | None:
    """A time, UTC where it names no zone, or None where it was not given. Raises 422."""
    text = request.args.get(name)
    if not text:
        return None
    try:
        given = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        message = f"{name} must be a time like 2026-01-31T12:00:00Z, not {text[:60]!r}."
        raise invalid(["query", name], message) from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def search_text() -> str:
    """`?q=` or `?search=`: what the name must contain."""
    asked = request.args.get("q") or request.args.get("search", "")
    return asked.replace("\0", "").strip()
