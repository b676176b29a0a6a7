"""Health, the public facts, and the OpenAPI document."""

from __future__ import annotations

import asyncio

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.openapi import readable_path
from parsyn.services.context import Context
from tests.hub.conftest import Person


async def test_health_says_that_every_part_works(anonymous: Person) -> None:
    answer = await anonymous.get("/health")
    assert answer.status == 200
    assert answer.body["status"] == "ok"
    parts = {name: answer.body[name] for name in ("database", "redis", "storage")}
    assert parts == {"database": "ok", "redis": "ok", "storage": "ok"}
    assert answer.body["workers_online"] == 0


async def test_health_names_the_part_that_fails(
    anonymous: Person, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise ParsynError(ErrorCode.UNAVAILABLE, "The disk is full: free some space.")

    monkeypatch.setattr(context.storage, "check", full)
    answer = await anonymous.get("/health")
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "5"
    assert answer.body["storage"] == "The disk is full: free some space."
    assert answer.body["status"] == "failing"
    assert (answer.body["database"], answer.body["redis"]) == ("ok", "ok")


async def test_health_without_redis_and_database(
    anonymous: Person, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise OSError("connection refused")

    monkeypatch.setattr(context.queue, "check", gone)
    monkeypatch.setattr(context.database, "check", gone)
    answer = await anonymous.get("/health")
    assert (answer.status, answer.body["storage"]) == (503, "ok")
    assert answer.body["redis"] == "Redis does not answer (OSError)."
    assert answer.body["database"] == "A query failed: OSError."


async def test_health_is_asked_once_a_second_whoever_asks(
    anonymous: Person, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(context.storage, "check", lambda: asked.append(None))
    answers = await asyncio.gather(*(anonymous.get("/health") for _ in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert len(asked) == 1


async def test_the_openapi_document_has_every_declared_route(anonymous: Person) -> None:
    answer = await anonymous.get("/openapi.json")
    assert answer.status == 200
    paths = answer.body["paths"]
    for endpoint in anonymous.app.extensions["parsyn"].endpoints:
        operation = paths[readable_path(endpoint.path)][endpoint.method.lower()]
        assert operation["summary"], endpoint.name
        assert (operation["security"] == []) == (endpoint.scope is None), endpoint.name
        assert str(endpoint.status) in operation["responses"], endpoint.name


async def test_the_document_tells_forms_and_query_strings(anonymous: Person) -> None:
    paths = (await anonymous.get("/openapi.json")).body["paths"]
    body = paths["/api/v1/datasets"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "multipart/form-data"}
    preview = paths["/api/v1/datasets/{dataset_id}/preview"]["get"]["parameters"]
    assert {p["name"]: p["in"] for p in preview} == {
        "dataset_id": "path",
        "offset": "query",
        "limit": "query",
        "model_id": "query",
        "train_on": "query",
    }


async def test_every_reference_in_the_openapi_document_resolves(anonymous: Person) -> None:
    document = (await anonymous.get("/openapi.json")).body
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    wanted: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                wanted.add(value["$ref"])
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(document)
    assert "#/components/schemas/DatasetIn" in known | wanted
    assert wanted <= known


async def test_what_is_not_there_is_a_problem_document(anonymous: Person) -> None:
    answer = await anonymous.get("/nothing")
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.headers["Content-Type"] == "application/problem+json"
    answer = await anonymous.ask("DELETE", "/system")
    assert (answer.status, answer.code) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("raw", "mime", "status", "code"),
    [
        (b"{", "application/json", 400, "malformed"),
        (b'{"email": NaN}', "application/json", 400, "malformed"),
        (b"[" * 100_000, "application/json", 400, "malformed"),
        (b"email=a", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"[1, 2]", "application/json", 422, "validation_failed"),
        (b'{"email": "a\\u0000b", "password": "x"}', "application/json", 422, "validation_failed"),
        (b'{"email": "\\ud800", "password": "x"}', "application/json", 422, "validation_failed"),
        (b'{"email": "a@b.cd", "pass": "x"}', "application/json", 422, "validation_failed"),
    ],
)
async def test_bodies_that_are_none(
    anonymous: Person, raw: bytes, mime: str, status: int, code: str
) -> None:
    answer = await anonymous.ask("POST", "/auth/login", data=raw, headers={"Content-Type": mime})
    assert (answer.status, answer.code) == (status, code)
    assert "Traceback" not in answer.body["detail"]
