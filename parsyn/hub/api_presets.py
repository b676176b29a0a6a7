"""Presets of trainers."""

from __future__ import annotations

from typing import Any

from quart import request

from parsyn.hub.hub import hub, principal
from parsyn.hub.queries import IN_PROJECT, optional_id
from parsyn.hub.routing import Api, paging
from parsyn.services import presets
from parsyn.wire.api.base import Page
from parsyn.wire.api.presets import PresetIn, PresetOut, PresetPatch
from parsyn.wire.states import Scope

api = Api("presets")
ONE = "/presets/<int:preset_id>"


@api.endpoint(
    "GET",
    "/presets",
    scope=Scope.READ,
    answers=Page[PresetOut],
    query={"trainer": "Only of this trainer.", "project_id": IN_PROJECT},
)
async def list_presets() -> dict[str, Any]:
    """Presets: those that come with the trainers, then one's own."""
    limit, offset = paging()
    context = hub().context
    return await context.database.read(
        presets.page,
        context,
        principal(),
        request.args.get("trainer", ""),
        optional_id("project_id"),
        limit,
        offset,
    )


@api.endpoint(
    "POST",
    "/presets",
    scope=Scope.WRITE,
    body=PresetIn,
    answers=PresetOut,
    status=201,
    idempotent=True,
)
async def create(body: PresetIn) -> dict[str, Any]:
    """Keep parameters under a name."""
    context = hub().context
    return await context.database.write(presets.create, context, principal(), body)


@api.endpoint("PATCH", ONE, scope=Scope.WRITE, body=PresetPatch, answers=PresetOut)
async def patch(preset_id: int, body: PresetPatch) -> dict[str, Any]:
    """Change a preset's name, description or parameters."""
    context = hub().context
    return await context.database.write(presets.change, context, principal(), preset_id, body)


@api.endpoint("DELETE", ONE, scope=Scope.WRITE)
async def delete(preset_id: int) -> None:
    """Delete a preset; jobs that were made from it keep their settings."""
    await hub().context.database.write(presets.delete, principal(), preset_id)
