"""What every part of the HTTP contract shares."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

T = TypeVar("T")


def _as_time(value: Any) -> Any:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


def _rfc3339(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Time = Annotated[
    datetime,
    BeforeValidator(_as_time),
    PlainSerializer(_rfc3339, return_type=str, when_used="json"),
]
"""RFC 3339 in UTC on the wire; rows hold seconds since the epoch, which are accepted."""


class Out(BaseModel):
    """A response. Built from rows by name, hence `from_attributes`."""

    model_config = ConfigDict(
        from_attributes=True, json_schema_serialization_defaults_required=True
    )


class In(BaseModel):
    """A request body: unknown keys are refused, NaN and Inf too."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=True)


class Page(Out, Generic[T]):
    items: list[T]
    total: int


class FieldProblem(Out):
    loc: list[str | int]
    msg: str


class Problem(Out):
    """`application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem] = []


class Health(Out):
    status: str
    version: str
    database: str
    redis: str
    storage: str
    workers_online: int


class Accepted(Out):
    """The answer of a 202."""

    id: int
    status: str


Name = Annotated[str, Field(min_length=1, max_length=200)]
