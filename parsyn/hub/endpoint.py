"""What a route declares of itself; the guard, OpenAPI and the authorisation matrix read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from parsyn.wire.states import Role, Scope


@dataclass(frozen=True)
class Endpoint:
    """One operation. `scope` None means public. `answers` None means the handler's own response."""

    name: str
    method: str
    path: str
    summary: str
    scope: Scope | None
    role: Role
    body: type[BaseModel] | None
    answers: Any
    status: int
    idempotent: bool
    tag: str
    ticket: bool = False
    form: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
