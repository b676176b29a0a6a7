"""What only admins may do."""

from __future__ import annotations

from typing import Any

from quart import request

from parsyn.hub.hub import hub, principal
from parsyn.hub.queries import choice, moment, optional_id, search_text
from parsyn.hub.routing import Api, paging
from parsyn.services import admin, audit
from parsyn.wire.api.accounts import AdminUserOut, AdminUserPatch
from parsyn.wire.api.audit import AuditAction, AuditOut
from parsyn.wire.api.base import Page
from parsyn.wire.states import Role, Scope

api = Api("admin")


@api.endpoint(
    "GET",
    "/admin/users",
    scope=Scope.ADMIN,
    role=Role.ADMIN,
    answers=Page[AdminUserOut],
    query={"q": "A part of the name or address."},
)
async def list_users() -> dict[str, Any]:
    """Every user; `?q=` filters by name or address."""
    limit, offset = paging()
    query = search_text()
    return await hub().context.database.read(admin.users, principal(), limit, offset, query)


@api.endpoint(
    "PATCH",
    "/admin/users/<int:user_id>",
    scope=Scope.ADMIN,
    role=Role.ADMIN,
    body=AdminUserPatch,
    answers=AdminUserOut,
)
async def change_user(user_id: int, body: AdminUserPatch) -> dict[str, Any]:
    """Give a user a role, disable or enable them; a disabled user is logged out."""
    context = hub().context
    return await context.database.write(
        admin.change_user, context, principal(), user_id, body.role, body.disabled
    )


@api.endpoint(
    "GET",
    "/admin/audit",
    scope=Scope.ADMIN,
    role=Role.ADMIN,
    answers=Page[AuditOut],
    query={
        "action": "Only this kind of deed.",
        "user_id": "Only what this user did.",
        "project_id": "Only in this project.",
        "subject": "Only what was done to this, as `worker:12`.",
        "q": "A part of the actor.",
        "since": "From this time on (RFC 3339).",
        "until": "Before this time.",
    },
)
async def list_audit() -> dict[str, Any]:
    """Who did what, newest first."""
    limit, offset = paging()
    return await hub().context.database.read(
        audit.page,
        limit,
        offset,
        action=choice("action", [str(action) for action in AuditAction]),
        user_id=optional_id("user_id"),
        project_id=optional_id("project_id"),
        subject=request.args.get("subject", "").replace("\0", ""),
        search=search_text(),
        since=moment("since"),
        until=moment("until"),
    )
