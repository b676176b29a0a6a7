"""Who did what: written in the transaction of the deed itself, so that there is none without it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from parsyn.clock import now
from parsyn.services.asking import asking
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.audit import AuditEntry
from parsyn.store.users import ApiKey, User
from parsyn.wire.api.audit import AuditAction


def record(
    who: Principal | User,
    action: AuditAction,
    subject: str | None,
    project_id: int | None = None,
    **details: Any,
) -> None:
    """Write one entry; `subject` as `worker:12`. Secrets never belong in `details`."""
    user_id = who.user_id if isinstance(who, Principal) else int(who.id)
    _write(_actor(who), action, subject, project_id, details, user_id)


def record_unknown(action: AuditAction, actor: str, **details: Any) -> None:
    """Write an entry of somebody who has no account here, or has not shown to be its owner."""
    _write(actor, action, None, None, details, None)


def record_agent(action: AuditAction, subject: str, project_id: int, **details: Any) -> None:
    """Write what a machine did with its key."""
    _write("an agent", action, subject, project_id, details, None)


def _write(
    actor: str,
    action: AuditAction,
    subject: str | None,
    project_id: int | None,
    details: dict[str, Any],
    user_id: int | None,
) -> None:
    AuditEntry.create(
        user_id=user_id,
        project_id=project_id,
        actor=actor[:250],
        action=action,
        subject=subject,
        ip=asking.get().ip,
        details=details,
    )


def _actor(who: Principal | User) -> str:
    user = User.by_id(who.user_id) if isinstance(who, Principal) else who
    name = str(user.email) if user is not None else "a deleted account"
    if isinstance(who, Principal) and who.api_key_id is not None:
        key = ApiKey.by_id(who.api_key_id)
        return f"{name} (API key {key.name if key else who.api_key_id})"
    return name


def forget_old(context: Context) -> int:
    """Remove what is older than `hub.audit_days`; returns how many entries."""
    limit = now() - context.settings.integer("hub.audit_days") * 86_400
    return int(AuditEntry.delete().where(AuditEntry.created_at < limit).execute())


def page(
    limit: int,
    offset: int,
    *,
    action: str = "",
    user_id: int | None = None,
    project_id: int | None = None,
    subject: str = "",
    search: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, Any]:
    """Entries, newest first; `search` is a part of the actor."""
    query = AuditEntry.select()
    for column, value in (
        (AuditEntry.action, action),
        (AuditEntry.user_id, user_id),
        (AuditEntry.project_id, project_id),
        (AuditEntry.subject, subject),
    ):
        if value:
            query = query.where(column == value)
    if search:
        query = query.where(AuditEntry.actor.contains(search))
    if since is not None:
        query = query.where(AuditEntry.created_at >= since.timestamp())
    if until is not None:
        query = query.where(AuditEntry.created_at < until.timestamp())
    rows = query.order_by(AuditEntry.id.desc()).limit(limit).offset(offset)
    items = [{**row.__data__, "at": row.created_at} for row in rows]
    return {"items": items, "total": query.count()}
