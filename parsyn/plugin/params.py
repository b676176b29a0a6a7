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
FAR = 10**9
"""A bound that only keeps numbers storable is not worth a word."""


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
            FieldError((loc, *item["loc"]), _in_words(model, item))
            for item in error.errors(include_url=False)
        ]
    if errors:
        summary = "; ".join(f"{'.'.join(map(str, e.loc))}: {e.msg}" for e in errors[:3])
        raise ParsynError(ErrorCode.VALIDATION_FAILED, summary, errors=errors)
    return parsed


def _unknown(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return f"There is no setting `{key}`.{hint}"


NUMBER_ERRORS = frozenset(
    {
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "int_type",
        "int_parsing",
        "int_from_float",
        "int_parsing_size",
        "float_type",
        "float_parsing",
        "finite_number",
    }
)


def _in_words(model: type[PluginParams], item: Any) -> str:
    """One sentence that says what would be right, with the whole range of a number."""
    kind, name = str(item["type"]), str(item["loc"][0]) if item["loc"] else ""
    schema = model.model_json_schema().get("properties", {}).get(name, {})
    if kind in NUMBER_ERRORS and len(item["loc"]) == 1:
        return _range(schema)
    if kind in ("bool_type", "bool_parsing"):
        return "must be true or false."
    if kind == "literal_error":
        return f"must be {item['ctx']['expected']}."
    return str(item["msg"]).removeprefix("Value error, ")


def _range(schema: Mapping[str, Any]) -> str:
    """`must be a number, above 0 and up to 1000.`"""
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    option = options[0] if options else {}
    what = "a whole number" if option.get("type") == "integer" else "a number"
    low = option.get("minimum", option.get("exclusiveMinimum"))
    high = option.get("maximum", option.get("exclusiveMaximum", FAR))
    above, below = "exclusiveMinimum" in option, "exclusiveMaximum" in option
    if low is None:
        return f"must be {what}." if high >= FAR else f"must be {what}, {high:g} at most."
    if high >= FAR:
        return f"must be {what}, above {low:g}." if above else f"must be {what}, {low:g} or more."
    if above:
        end = "below" if below else "up to"
        return f"must be {what}, above {low:g} and {end} {high:g}."
    if below:
        return f"must be {what}, {low:g} or more and below {high:g}."
    return f"must be {what}, from {low:g} to {high:g}."
