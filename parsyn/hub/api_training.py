"""Training jobs and the trainers that can run them."""

from __future__ import annotations

from typing import Any

from parsyn.hub.routing import Api, hub
from parsyn.wire.api.base import Page
from parsyn.wire.api.training import TrainerOut
from parsyn.wire.states import Scope

api = Api("training")


@api.endpoint("GET", "/trainers", scope=Scope.READ, answers=Page[TrainerOut])
async def trainers() -> dict[str, Any]:
    """The installed trainers, each with the JSON schema of its parameters."""
    items = [
        {
            "name": trainer.name,
            "title": trainer.title,
            "accepts": sorted(trainer.accepts),
            "schema": trainer.Params.model_json_schema(),
        }
        for trainer in hub().context.plugins.trainers.values()
    ]
    return {"items": items, "total": len(items)}
