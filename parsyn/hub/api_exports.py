"""Exports of models to other formats, and the exporters that make them."""

from __future__ import annotations

from typing import Any

from parsyn.hub.routing import Api, hub
from parsyn.wire.api.base import Page
from parsyn.wire.api.models import ExporterOut
from parsyn.wire.states import Scope

api = Api("exports")


@api.endpoint("GET", "/exporters", scope=Scope.READ, answers=Page[ExporterOut])
async def exporters() -> dict[str, Any]:
    """The installed exporters, each with the JSON schema of its parameters."""
    items = [
        {
            "name": exporter.name,
            "title": exporter.title,
            "schema": exporter.Params.model_json_schema(),
        }
        for exporter in hub().context.plugins.exporters.values()
    ]
    return {"items": items, "total": len(items)}
