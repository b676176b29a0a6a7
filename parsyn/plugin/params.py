"""Parameters of plugins: pydantic models that refuse unknown keys with the nearest known one.

A field's `json_schema_extra` may hold `group`, `order`, `unit`, `advanced` (for the generated form)
and `aliases` (other tools' names for it, accepted and shown under ours).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from parsyn.errors import ErrorCode, FieldError, ParsynError


class PluginParams(BaseModel):
    """Base of every plugin's `Params` and `Settings`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


P = TypeVar("P", bound=PluginParams)


def aliases_of(model: type[PluginParams]) -> dict[str, str]:
    """Every accepted alias and the name it stands for."""
    found: dict[str, str] = {}
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict):
            names = extra.get("aliases", [])
            if isinstance(names, list):
                found.update({str(alias): name for alias in names})
    return found


def parse_params(model: type[P], given: Mapping[str, Any], *, loc: str = "config") -> P:
    """Validate `given` against `model`.

    Raises ParsynError `validation_failed` whose errors point at `(loc, key, ...)`; an unknown
    key is answered with the nearest known one, a name given twice (once as alias) is refused.
    """
    aliases = aliases_of(model)
    values: dict[str, Any] = {}
    errors: list[FieldError] = []
    for key, value in given.items():
        name = aliases.get(key, key)
        if name not in model.model_fields:
            errors.append(FieldError((loc, key), _unknown(key, [*model.model_fields, *aliases])))
        elif name in values:
            errors.append(FieldError((loc, key), f"`{name}` is given twice, once as `{key}`."))
        else:
            values[name] = value
    try:
        parsed = model.model_validate(values)
    except ValidationError as error:
        errors += [
            FieldError((loc, *item["loc"]), _plain(item["msg"]))
            for item in error.errors(include_url=False, include_context=False)
        ]
    if errors:
        summary = "; ".join(f"{'.'.join(map(str, e.loc))}: {e.msg}" for e in errors[:3])
        raise ParsynError(ErrorCode.VALIDATION_FAILED, summary, errors=errors)
    return parsed


def _unknown(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return f"There is no setting `{key}`.{hint}"


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ")
