"""Evaluations of models, and the evaluators that can run them."""

from __future__ import annotations

from typing import Any

from parsyn.hub.routing import Api, hub
from parsyn.wire.api.base import Page
from parsyn.wire.api.models import EvaluatorOut
from parsyn.wire.states import Scope

api = Api("evaluations")


@api.endpoint("GET", "/evaluators", scope=Scope.READ, answers=Page[EvaluatorOut])
async def evaluators() -> dict[str, Any]:
    """The installed evaluators, each with the JSON schema of its parameters."""
    items = [
        {
            "name": evaluator.name,
            "title": evaluator.title,
            "schema": evaluator.Params.model_json_schema(),
        }
        for evaluator in hub().context.plugins.evaluators.values()
    ]
    return {"items": items, "total": len(items)}
