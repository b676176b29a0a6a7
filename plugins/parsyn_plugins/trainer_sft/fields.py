"""How a parameter is declared: its type, its words, and its place in the generated form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

LIMIT = 1_000_000_000


def setting(
    default: Any,
    title: str,
    description: str,
    group: str,
    *,
    aliases: Sequence[str] = (),
    unit: str | None = None,
    advanced: bool = False,
    **limits: Any,
) -> Any:
    """A pydantic field with what the form needs. `limits` are pydantic's own (ge, le, ...)."""
    extra: dict[str, Any] = {"group": group, "advanced": advanced, "aliases": list(aliases)}
    if unit:
        extra["unit"] = unit
    return Field(
        default=default, title=title, description=description, json_schema_extra=extra, **limits
    )


def in_words(sentence: str) -> WrapValidator:
    """One sentence in place of one message for each branch of a union; a bool is no number."""

    def validate(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, bool) and "true" not in sentence:
            raise ValueError(sentence)
        try:
            return inner(value)
        except ValidationError:
            raise ValueError(sentence) from None

    return WrapValidator(validate)


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false.")
    return value


Auto = Literal["auto"]
Number = Annotated[float, BeforeValidator(_no_bool)]
Count = Annotated[int, Field(ge=1, le=LIMIT), BeforeValidator(_no_bool)]
Whole = Annotated[int, Field(ge=0, le=2**32 - 1), BeforeValidator(_no_bool)]
Rank = Annotated[int, Field(ge=1, le=4096), BeforeValidator(_no_bool)]
AutoCount = Annotated[
    Auto | Annotated[int, Field(ge=1, le=LIMIT)],
    in_words('must be a whole number, 1 or more, or "auto".'),
]
AutoInterval = Annotated[
    Auto | Annotated[int, Field(ge=1, le=LIMIT)] | Annotated[float, Field(gt=0, lt=1)],
    in_words('must be a number of steps, a part of the run between 0 and 1, or "auto".'),
]
AutoRate = Annotated[
    Auto | Annotated[float, Field(gt=0, le=1)],
    in_words('must be a number above 0 and up to 1, or "auto".'),
]
AutoFlag = Annotated[
    Auto | bool,
    in_words('must be true, false or "auto".'),
]
AutoSplit = Annotated[
    Auto | Annotated[int, Field(ge=0, le=LIMIT)] | Annotated[float, Field(ge=0, lt=1)],
    in_words('must be a part of the rows below 1, a number of rows, or "auto".'),
]
