"""Requests that must take effect once."""

from __future__ import annotations

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.store.outbox import IdempotencyKey

KEPT_SECONDS = 24 * 3600
RUNNING_SECONDS = 180.0
"""Longer than any request runs: one that has not ended by then died with its hub process."""


def claim(user_id: int, key: str, digest: str) -> tuple[int, tuple[int, str] | None]:
    """(row id, stored answer or None). Raises 409 while the first one still runs, and where it
    never came to its end; 422 on misuse."""
    if not 1 <= len(key) <= 200:
        raise invalid(["Idempotency-Key"], "The Idempotency-Key must have 1 to 200 characters.")
    IdempotencyKey.delete().where(IdempotencyKey.created_at < now() - KEPT_SECONDS).execute()
    row = IdempotencyKey.get_or_none((IdempotencyKey.user == user_id) & (IdempotencyKey.key == key))
    if row is None:
        made = IdempotencyKey.create(user=user_id, key=key, request_hash=digest)
        return int(made.id), None
    if row.request_hash != digest:
        raise invalid(
            ["Idempotency-Key"],
            "This Idempotency-Key was used for another request.",
        )
    if row.status is None and row.created_at < now() - RUNNING_SECONDS:
        raise ParsynError(
            ErrorCode.CONFLICT,
            "The hub stopped while the first request with this key ran. See whether it took effect;"
            " if not, send it again with another key.",
        )
    if row.status is None:
        raise ParsynError(
            ErrorCode.CONFLICT, "The first request with this key still runs.", retry_after=1
        )
    return int(row.id), (int(row.status), str(row.body))


def store(row_id: int, status: int, body: str) -> None:
    """Keep the answer for repetition."""
    IdempotencyKey.update(status=status, body=body).where(IdempotencyKey.id == row_id).execute()


def release(row_id: int) -> None:
    """The request failed: its key may be used again."""
    IdempotencyKey.delete().where(IdempotencyKey.id == row_id).execute()
