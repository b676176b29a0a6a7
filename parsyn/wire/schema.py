"""`python -m parsyn.wire.schema` prints one JSON schema of everything on the HTTP side.

The web UI's TypeScript types are generated from it.
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from parsyn.wire import events
from parsyn.wire.api import (
    accounts,
    base,
    chat,
    datasets,
    models,
    presets,
    queue,
    training,
    workers,
)

MODULES: tuple[ModuleType, ...] = (
    base, accounts, datasets, models, training, presets, queue, workers, chat, events,
)  # fmt: skip


def api_models() -> list[type[BaseModel]]:
    """Every concrete model of the HTTP contract and the dashboard socket, in module order."""
    return [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and value.__module__ == module.__name__
        and value.__name__ not in ("In", "Out", "Page")
    ]


def schema() -> dict[str, Any]:
    """One document; each model is below `$defs`, as it is serialised."""
    _, document = models_json_schema(
        [(model, "serialization") for model in api_models()],
        ref_template="#/$defs/{model}",
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Api", **document}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))  # noqa: T201
