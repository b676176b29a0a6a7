"""The OpenAPI document, generated from the declared endpoints and their pydantic models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

import parsyn
from parsyn.hub.auth import SESSION_COOKIE
from parsyn.hub.endpoint import Endpoint
from parsyn.wire.api.base import Page, Problem
from parsyn.wire.states import Role

REF = "#/components/schemas/{model}"
CREDENTIALS: list[dict[str, list[str]]] = [{"bearer": []}, {"session": []}]
_PARAMETER = re.compile(r"<(?:(?P<kind>\w+):)?(?P<name>\w+)>")
FORM = {
    "type": "object",
    "required": ["file", "name"],
    "properties": {"file": {"type": "string", "format": "binary"}, "name": {"type": "string"}},
    "additionalProperties": {"type": "string"},
}
_PAGING = (
    ("limit", "How many items, at most 200.", {"type": "integer", "default": 50, "maximum": 200}),
    ("offset", "How many items to skip.", {"type": "integer", "default": 0, "minimum": 0}),
)


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """OpenAPI 3.1 of every endpoint; a public one carries `security: []`."""
    adapters = _adapters(endpoints)
    schemas, definitions = TypeAdapter.json_schemas(
        [(key, key[1], adapter) for key, adapter in adapters.items()], ref_template=REF
    )
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas)
        paths.setdefault(readable_path(endpoint.path), {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Parsyn", "version": parsyn.__version__},
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
            },
        },
    }


def readable_path(path: str) -> str:
    """`/datasets/<int:dataset_id>` as `/datasets/{dataset_id}`."""
    return _PARAMETER.sub(lambda found: f"{{{found['name']}}}", path)


Key = tuple[str, JsonSchemaMode]


def _adapters(endpoints: Sequence[Endpoint]) -> dict[Key, TypeAdapter[Any]]:
    found: dict[Key, TypeAdapter[Any]] = {(_name(Problem), "serialization"): TypeAdapter(Problem)}
    for endpoint in endpoints:
        if endpoint.body is not None:
            found[(_name(endpoint.body), "validation")] = TypeAdapter(endpoint.body)
        if endpoint.answers is not None:
            found[(_name(endpoint.answers), "serialization")] = TypeAdapter(endpoint.answers)
    return found


def _name(model: Any) -> str:
    return f"{getattr(model, '__module__', '')}.{model!r}"


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, schemas),
        "security": [] if endpoint.scope is None else CREDENTIALS,
    }
    if endpoint.scope is not None:
        operation["x-scope"] = str(endpoint.scope)
    if endpoint.role is not Role.USER:
        operation["x-role"] = str(endpoint.role)
    if endpoint.body is not None:
        schema = schemas[((_name(endpoint.body), "validation"), "validation")]
        content = {"application/json": {"schema": schema}}
        if endpoint.form:
            content["multipart/form-data"] = {"schema": FORM}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found = [
        {
            "name": match["name"],
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if match["kind"] == "int" else "string"},
        }
        for match in _PARAMETER.finditer(endpoint.path)
    ]
    if _is_page(endpoint.answers) and endpoint.method == "GET":
        found += [
            {"name": name, "in": "query", "description": text, "schema": schema}
            for name, text, schema in _PAGING
        ]
    found += [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in endpoint.query.items()
    ]
    if endpoint.idempotent:
        found.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    return found


def _responses(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Good."}
    if endpoint.answers is not None:
        key = (_name(endpoint.answers), "serialization")
        good["content"] = {"application/json": {"schema": schemas[(key, "serialization")]}}
    problem = schemas[((_name(Problem), "serialization"), "serialization")]
    bad = {
        "description": "What is wrong, where, and what to do.",
        "content": {"application/problem+json": {"schema": problem}},
    }
    return {str(endpoint.status): good, "default": bad}


def _is_page(answers: Any) -> bool:
    return (
        isinstance(answers, type) and issubclass(answers, BaseModel) and issubclass(answers, Page)
    )
