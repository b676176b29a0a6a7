"""API keys of who asks."""

from __future__ import annotations

from typing import Any

from parsyn.hub.hub import hub, principal
from parsyn.hub.routing import Api, paging
from parsyn.services import keys
from parsyn.wire.api.accounts import ApiKeyCreated, ApiKeyIn, ApiKeyOut
from parsyn.wire.api.base import Page
from parsyn.wire.states import Scope

api = Api("keys")


@api.endpoint("GET", "/api-keys", scope=Scope.READ, answers=Page[ApiKeyOut])
async def list_keys() -> dict[str, Any]:
    """The user's API keys, newest first."""
    return await hub().context.database.read(keys.listed, principal(), *paging())


@api.endpoint(
    "POST", "/api-keys", scope=Scope.WRITE, body=ApiKeyIn, answers=ApiKeyCreated, status=201
)
async def create_key(body: ApiKeyIn) -> dict[str, Any]:
    """A new API key; the key itself is in this answer only."""
    return await hub().context.database.write(
        keys.create, principal(), body.name, body.scopes, body.expires_at
    )


@api.endpoint("DELETE", "/api-keys/<int:key_id>", scope=Scope.WRITE, status=204)
async def delete_key(key_id: int) -> None:
    """Delete a key; it stops working at once."""
    await hub().context.database.write(keys.delete, principal(), key_id)
