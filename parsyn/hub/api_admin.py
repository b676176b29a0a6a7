"""What only admins may do."""

from __future__ import annotations

from typing import Any

from parsyn.hub.queries import search_text
from parsyn.hub.routing import Api, hub, paging, principal
from parsyn.services import admin
from parsyn.wire.api.accounts import AdminUserOut, AdminUserPatch
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
    return await hub().context.database.write(
        admin.change_user, principal(), user_id, body.role, body.disabled
    )
