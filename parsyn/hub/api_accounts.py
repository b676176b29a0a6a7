"""Set-up, login, sessions, and the account of who asks."""

from __future__ import annotations

from typing import Any

from parsyn.hub.routing import Api, hub, principal
from parsyn.services import accounts
from parsyn.wire.api.accounts import MeOut
from parsyn.wire.states import Scope

api = Api("accounts")


@api.endpoint("GET", "/me", scope=Scope.READ, answers=MeOut)
async def me() -> dict[str, Any]:
    """Who asks, with their projects."""
    return await hub().context.database.read(accounts.me, principal())
