"""Users, as an admin sees them. Nobody grants above their own role; an owner always remains."""

from __future__ import annotations

from typing import Any

from parsyn.errors import ErrorCode, ParsynError, not_found
from parsyn.services import audit, signals
from parsyn.services.context import Context
from parsyn.services.enrollment import OWNER_DISABLED
from parsyn.services.principal import Principal
from parsyn.store.users import Session, User
from parsyn.store.workers import Worker
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.states import Role
from parsyn.wire.worker import CloseCode

RANK = {Role.USER: 0, Role.ADMIN: 1, Role.OWNER: 2}


def users(who: Principal, limit: int, offset: int, query: str = "") -> dict[str, Any]:
    """A page of users in order of their ids; `query` is a part of the name or address."""
    rows = User.select()
    if query:
        rows = rows.where(User.email.contains(query) | User.name.contains(query))
    page = rows.order_by(User.id).limit(limit).offset(offset)
    return {"items": [row.as_dict() for row in page], "total": rows.count()}


def change_user(
    context: Context, who: Principal, user_id: int, role: Role | None, disabled: bool | None
) -> dict[str, Any]:
    """Change a user's role, disable or enable them; who is disabled is logged out everywhere, their
    workers too. Raises 403 above one's own role, 409 for the
    last owner and for oneself."""
    user = User.get_or_none(User.id == user_id)
    if user is None:
        raise not_found("user")
    for wanted in (Role(user.role), role):
        if wanted is not None and RANK[wanted] > RANK[who.role]:
            raise ParsynError(ErrorCode.FORBIDDEN, f"This needs the role `{wanted}`.")
    if disabled and user.id == who.user_id:
        raise ParsynError(ErrorCode.INVALID_STATE, "You cannot disable your own account.")
    demoted = role is not None and role != Role.OWNER
    if user.role == Role.OWNER and (demoted or disabled):
        _refuse_last_owner(user)
    changes = {
        key: value
        for key, value in {"role": role, "disabled": disabled}.items()
        if value is not None
    }
    if changes:
        User.update(**changes).where(User.id == user.id).execute()
        told = {"email": user.email, **{key: str(value) for key, value in changes.items()}}
        audit.record(who, AuditAction.USER_CHANGED, f"user:{user.id}", None, **told)
    if disabled:
        Session.delete().where(Session.user == user).execute()
        for worker in Worker.select(Worker.id).where(Worker.user == user):
            signals.close_socket(context, worker.id, CloseCode.REVOKED, OWNER_DISABLED)
    return User.get_by_id(user.id).as_dict()


def _refuse_last_owner(user: User) -> None:
    # Locked, so that two owners cannot demote each other at once (SQLite has one writer anyway).
    owners = User.select().where((User.role == Role.OWNER) & (User.disabled == False))  # noqa: E712
    if User._meta.database.for_update:
        owners = owners.for_update()
    if {row.id for row in owners} <= {user.id}:
        raise ParsynError(
            ErrorCode.INVALID_STATE, "This is the last owner; make someone else an owner first."
        )
