"""The small JSON files of stored models: config.json, generation_config.json."""

from __future__ import annotations

import json
from typing import Any

from parsyn.errors import ParsynError
from parsyn.services.context import Context
from parsyn.store.models import Model, ModelFile

CONFIG = "config.json"
GENERATION = "generation_config.json"
MOST_BYTES = 65_536
KEPT = 256

_kept: dict[str, dict[str, Any]] = {}  # by the file's digest


def read(context: Context, model: Model, path: str) -> dict[str, Any]:
    """What the file says, an adapter's base's where it has none of its own.

    Empty where there is none or it is no use: a model's oddities must not stop anything.
    """
    file = ModelFile.get_or_none((ModelFile.model == model.id) & (ModelFile.path == path))
    if file is None:
        base = model.base_model
        return {} if base is None else read(context, base, path)
    if file.sha256 not in _kept:
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[file.sha256] = _parsed(context, file)
    return _kept[file.sha256]


def _parsed(context: Context, file: ModelFile) -> dict[str, Any]:
    if file.size > MOST_BYTES:
        return {}
    try:
        found = json.loads(b"".join(context.storage.get(file.key)))
    except (ParsynError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
