"""Every route is declared, described in the OpenAPI document, and asked for by a test."""

from __future__ import annotations

import re
from typing import Any

import pytest
from quart import Quart

from parsyn.hub.app import create_app
from parsyn.hub.endpoint import Endpoint
from parsyn.services.context import Context
from tests.meta.tree import has_test, sources_of_tests

SOCKETS = {"/ws/worker", "/ws/dashboard"}


@pytest.fixture
def app(context: Context) -> Quart:
    return create_app(context)


def declared(app: Quart) -> list[Endpoint]:
    endpoints: list[Endpoint] = app.extensions["parsyn"].endpoints
    return endpoints


def openapi_path(path: str) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)


def test_every_rule_of_the_application_is_declared(app: Quart) -> None:
    known = {endpoint.path for endpoint in declared(app)} | SOCKETS
    open_rules = {
        rule.rule
        for rule in app.url_map.iter_rules()
        if rule.rule not in known
        and getattr(app.view_functions[rule.endpoint], "parsyn_endpoint", None) is None
    }
    assert not open_rules, "routes without Api.endpoint; the guard refuses them"


def test_no_operation_is_declared_twice(app: Quart) -> None:
    operations = [(endpoint.method, endpoint.path) for endpoint in declared(app)]
    assert sorted(set(operations)) == sorted(operations)


def test_every_operation_has_a_summary(app: Quart) -> None:
    silent = [e.name for e in declared(app) if len(e.summary.split()) < 2]
    assert not silent, "the first line of the handler's docstring is the summary"


async def document(app: Quart) -> dict[str, Any]:
    response = await app.test_client().get("/api/v1/openapi.json")
    assert response.status_code == 200
    found: dict[str, Any] = await response.get_json()
    return found


async def test_the_document_has_every_operation_with_summary_and_guard(app: Quart) -> None:
    paths = (await document(app))["paths"]
    shown = {
        (method.upper(), path): operation
        for path, item in paths.items()
        for method, operation in item.items()
        if method in ("get", "put", "post", "patch", "delete", "head")
    }
    expected = {
        (endpoint.method, openapi_path(endpoint.path)): endpoint
        for endpoint in declared(app)
        if endpoint.path.startswith(("/api/", "/v1/", "/health"))
    }
    assert expected.keys() <= shown.keys()
    for key, endpoint in expected.items():
        assert shown[key]["summary"] == endpoint.summary
        is_public = shown[key].get("security") == []
        assert is_public == (endpoint.scope is None), f"{key} is shown with the wrong guard"


OPENAI_CALLS = {
    ("GET", "/v1/models"): r"\.models\.list\(",
    ("GET", "/v1/models/<path:name>"): r"\.models\.retrieve\(",
    ("POST", "/v1/chat/completions"): r"\.chat\.completions\.create\(",
    ("POST", "/v1/completions"): r"(?<!chat)\.completions\.create\(",
}
OTHER_WORDS = {"GET": r"|\.(?:finish|wait|stream)\("}


def mentioned(endpoint: Endpoint) -> bool:
    """Whether a test has this path in a string, with its method close by.

    A path value is anything without a slash. Where the file names the subject, the beginning of
    the path may be in a variable (`f"{job}/logs"`, `get(path)`) or be put before by a table
    (`("GET", "/logs", …)`). OpenAI's own client counts where it is called.
    """
    if endpoint.path == "/<path:path>":
        return has_test(r"""\.get\(\s*["']/assets/""")
    openai = OPENAI_CALLS.get((endpoint.method, endpoint.path))
    segments = endpoint.path.removeprefix("/api/v1").split("/")[1:]
    verb = endpoint.method
    path = re.compile(rf"""["']{_alternatives(segments)}["'?]""")
    method = re.compile(
        rf"""\.{verb.lower()}\(|["']{verb}\b|\b{verb}["' ]|_{verb.lower()}\("""
        + OTHER_WORDS.get(verb, "")
    )
    by_variable = re.compile(
        rf"""(?:\.{verb.lower()}\(|["']{verb}["'],\s*)(?:path\b|url\b|f?["']["'])"""
    )
    for source in sources_of_tests().values():
        if openai and re.search(openai, source):
            return True
        if f"/{segments[0]}" not in source:
            continue
        if segments[-1].startswith("<") and len(segments) == 2 and by_variable.search(source):
            return True
        for found in path.finditer(source):
            if method.search(source[max(0, found.start() - 160) : found.end() + 40]):
                return True
    return False


def _alternatives(segments: list[str]) -> str:
    """The whole path, or what is left of it after any beginning."""
    whole = r"(?:\{\w[^{}]*\})?(?:/api/v1)?/" + "/".join(map(_segment, segments))
    rests = [segments[n:] for n in range(1, len(segments)) if not segments[n].startswith("<")]
    left = [r"(?:\{[^{}]+\})?/" + "/".join(map(_segment, rest)) for rest in rests]
    return "(?:" + "|".join([whole, *left]) + ")"


def _segment(part: str) -> str:
    if part.startswith("<path:"):
        return r"""[^"'\s?]+"""
    if part.startswith("<"):
        return r"""(?:\{[^{}]*\}|[^/"'\s?{}]+)"""
    return re.escape(part)


def test_every_operation_is_asked_for_by_a_test(app: Quart) -> None:
    untested = [f"{e.method} {e.path}" for e in declared(app) if not mentioned(e)]
    assert not untested, "no test outside tests/meta asks for:\n" + "\n".join(untested)
