"""API keys: made by a user, never able to do more than the user, shown once."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.services import audit
from parsyn.services.accounts import digest
from parsyn.services.principal import Principal
from parsyn.store.users import ApiKey
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.states import Scope

SHOWN_CHARACTERS = 12
MOST_KEYS = 100


def listed(who: Principal, limit: int, offset: int) -> dict[str, Any]:
    """A page of the user's keys, newest first."""
    query = ApiKey.select().where(ApiKey.user == who.user_id)
    rows = query.order_by(ApiKey.id.desc()).limit(limit).offset(offset)
    return {"items": [row.as_dict() for row in rows], "total": query.count()}


def create(
    who: Principal, name: str, scopes: list[Scope], expires_at: datetime | None
) -> dict[str, Any]:
    """A new key and, this once, its secret. Raises 403 for rights that the maker has not."""
    _refuse_wider_scopes(who, scopes)
    until = _seconds(expires_at)
    if until is not None and until <= now():
        raise invalid(["expires_at"], "A key cannot expire in the past.")
    if ApiKey.select().where(ApiKey.user == who.user_id).count() >= MOST_KEYS:
        raise ParsynError(
            ErrorCode.QUOTA_EXCEEDED, f"There are {MOST_KEYS} keys already; delete some first."
        )
    secret = f"psn_{secrets.token_urlsafe(32)}"
    row = ApiKey.create(
        user=who.user_id,
        name=name,
        prefix=secret[:SHOWN_CHARACTERS],
        key_hash=digest(secret),
        scopes=[scope for scope in Scope if scope in scopes],
        expires_at=_within_maker(who, until),
    )
    audit.record(
        who, AuditAction.API_KEY_MADE, f"api_key:{row.id}", name=name, scopes=list(row.scopes)
    )
    return {**row.as_dict(), "key": secret}


def delete(who: Principal, key_id: int) -> None:
    """Raises 404 when it is not this user's."""
    deleted = ApiKey.delete().where((ApiKey.id == key_id) & (ApiKey.user == who.user_id)).execute()
    if not deleted:
        raise not_found("API key")
    audit.record(who, AuditAction.API_KEY_DELETED, f"api_key:{key_id}")


def _refuse_wider_scopes(who: Principal, scopes: list[Scope]) -> None:
    if Scope.ADMIN in scopes and not who.is_admin:
        raise ParsynError(ErrorCode.FORBIDDEN, "Only an admin's key may have the scope `admin`.")
    wider = [scope for scope in scopes if scope not in who.scopes]
    if wider:
        raise ParsynError(
            ErrorCode.FORBIDDEN,
            f"The key that asks lacks {', '.join(wider)}, so it cannot make a key that has it.",
        )


def _seconds(at: datetime | None) -> float | None:
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _within_maker(who: Principal, until: float | None) -> float | None:
    """A key made by a key ends with it at the latest."""
    if who.api_key_id is None:
        return until
    maker = ApiKey.get_by_id(who.api_key_id)
    ends = [at for at in (until, maker.expires_at) if at is not None]
    return min(ends) if ends else None
