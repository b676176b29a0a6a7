"""Other tools' switches that stand for one of our values: `bf16: true`, `train_on_inputs: false`.

Plain renamings are declared on the fields; here are those whose values differ too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parsyn.errors import FieldError

SWITCHES: Mapping[str, tuple[str, str]] = {
    "train_on_inputs": ("all", "completions"),
    "train_on_prompt": ("all", "completions"),
    "train_on_completions": ("completions", "all"),
    "use_peft": ("lora", "full"),
}
"""What true and false mean."""


def resolve(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """The config with each switch's value in our words, under the key that was given."""
    values, errors = dict(config), list[FieldError]()
    for key, meanings in SWITCHES.items():
        if isinstance(values.get(key), bool):
            values[key] = meanings[0] if values[key] else meanings[1]
    _one_of(values, errors, {"bf16": "bf16", "fp16": "fp16"}, nothing="no")
    _one_of(values, errors, {"load_in_4bit": "4bit", "load_in_8bit": "8bit"}, nothing=None)
    _method(values, errors)
    _target_modules(values)
    return values, errors


def _one_of(
    values: dict[str, Any], errors: list[FieldError], names: Mapping[str, str], nothing: str | None
) -> None:
    """Two switches of which at most one may be on become one value under the first given key."""
    given = {key: values.pop(key) for key in names if values.get(key) is not None}
    for key in names:
        values.pop(key, None)
    if not given:
        return
    on = [key for key, value in given.items() if value is True]
    if len(on) > 1:
        errors.append(FieldError(("config", on[1]), f"`{on[0]}` and `{on[1]}` exclude each other."))
    first = next(iter(given))
    others = [value for value in given.values() if not isinstance(value, bool)]
    if on:
        values[on[0]] = names[on[0]]
    else:
        values[first] = others[0] if others else nothing


def _method(values: dict[str, Any], errors: list[FieldError]) -> None:
    if "use_peft" in values and "method" in values:
        wanted = values.pop("use_peft")
        if wanted is not None and (wanted == "full") != (values["method"] == "full"):
            text = f"`use_peft` and `method: {values['method']}` say different things."
            errors.append(FieldError(("config", "use_peft"), text))
    if values.get("use_peft", ...) is None:
        del values["use_peft"]
    key = "use_peft" if "use_peft" in values else "method"
    four_bit = "4bit" in (values.get("quantization"), values.get("load_in_4bit"))
    if four_bit and values.get(key, "lora") == "lora":
        values[key] = "qlora"


def _target_modules(values: dict[str, Any]) -> None:
    for key in ("target_modules", "lora_target"):
        named = values.get(key)
        if named in ("all", ["all"], "all_linear", ["all-linear"]):
            values[key] = "all-linear"
        elif isinstance(named, str) and named != "all-linear":
            values[key] = [name.strip() for name in named.split(",") if name.strip()]
