"""Health, what this hub is, and its OpenAPI document."""

from __future__ import annotations

from typing import Any

import parsyn
from parsyn.hub.routing import Api, hub
from parsyn.services import accounts
from parsyn.wire.api.accounts import SystemOut

api = Api("system", prefix="")


@api.endpoint("GET", "/api/v1/system", scope=None, answers=SystemOut)
async def system() -> dict[str, Any]:
    """What a browser must know before anyone has logged in."""
    context = hub().context
    return {
        "version": parsyn.__version__,
        "needs_setup": await context.database.read(accounts.needs_setup),
        "registration": context.settings.text("hub.registration"),
    }
