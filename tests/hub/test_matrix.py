"""Every declared route, asked by everyone: who gets in and what the others are told.

The table is generated from the live routes; a route without an expectation here fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from quart import Quart

from parsyn.hub.endpoint import Endpoint
from parsyn.services.context import Context
from tests.hub import matrix_world
from tests.hub.conftest import Person
from tests.hub.matrix_world import World

Ids = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """What people are answered who have a good credential; None: they get in.

    `least` is the one with the smallest role who gets in.
    """

    least: str
    other: int | None
    admin: int | None
    viewer: int | None


PUBLIC = Rule("anonymous", None, None, None)
ANYONE = Rule("other", None, None, None)  # lists of what one sees, and one's own account
SEEN = Rule("viewer", 404, 404, None)  # a thing of a project
CHANGED = Rule("editor", 404, 404, 403)
OWN = Rule("owner", 404, 404, 404)  # a thing of one user
GOVERNED = Rule("owner", 404, 404, 403)  # needs the role admin on the project
ADMIN = Rule("admin", 403, None, 403)
NAMED = Rule("owner", 422, 422, None)  # ids of what one sees, in a body
NAMED_TO_CHANGE = Rule("editor", 422, 422, 403)
TICKET = Rule("anonymous", None, None, None)  # the signed ticket in the path is the credential


@dataclass(frozen=True)
class Case:
    """`path` says which row each path value names, where that is not its own name."""

    rule: Rule
    body: Callable[[Ids], Any] | None = None
    path: dict[str, str] = field(default_factory=dict)
    data: bytes | None = None


def training(ids: Ids) -> Any:
    return {"model_id": ids["model_id"], "dataset_id": ids["dataset_id"]}


def chat(ids: Ids) -> Any:
    return {"model": str(ids["model_id"]), "messages": [{"role": "user", "content": "Hi"}]}


def compare(ids: Ids) -> Any:
    return {"model_ids": [ids["model_id"]] * 2, "messages": [{"role": "user", "content": "Hi"}]}


JOB = {"job_id": "training_id"}
EVALUATION = {"job_id": "evaluation_id"}
EXPORT = {"job_id": "export_id"}
TICKETED = {"ticket": "upload_id"}

CASES: dict[str, Case] = {
    "GET /": Case(PUBLIC),
    "GET /<path:path>": Case(PUBLIC, path={"path": "upload_id"}),
    "GET /health": Case(PUBLIC),
    "GET /metrics": Case(PUBLIC),  # for this machine, or with a token of its own
    "GET /install/worker": Case(PUBLIC),
    "GET /install/parsyn.pyz": Case(PUBLIC),
    "GET /api/v1/system": Case(PUBLIC),
    "GET /api/v1/openapi.json": Case(PUBLIC),
    "GET /api/v1/overview": Case(ANYONE),
    "GET /storage/<ticket>": Case(TICKET, path=TICKETED),
    "PUT /storage/<ticket>": Case(TICKET, path=TICKETED),
    # --- accounts
    "POST /api/v1/setup": Case(PUBLIC),
    "POST /api/v1/auth/register": Case(PUBLIC),
    "POST /api/v1/auth/login": Case(PUBLIC),
    "POST /api/v1/auth/logout": Case(ANYONE),
    "GET /api/v1/me": Case(ANYONE),
    "PATCH /api/v1/me": Case(ANYONE, lambda ids: {"theme": "dark"}),
    "GET /api/v1/me/sessions": Case(ANYONE),
    "DELETE /api/v1/me/sessions/<int:session_id>": Case(OWN),
    "DELETE /api/v1/me/sessions": Case(ANYONE),
    "GET /api/v1/api-keys": Case(ANYONE),
    "POST /api/v1/api-keys": Case(ANYONE, lambda ids: {"name": "k", "scopes": ["read"]}),
    "DELETE /api/v1/api-keys/<int:key_id>": Case(OWN, path={"key_id": "api_key_id"}),
    "GET /api/v1/admin/users": Case(ADMIN),
    "GET /api/v1/admin/audit": Case(ADMIN),
    "PATCH /api/v1/admin/users/<int:user_id>": Case(
        Rule("owner", 403, 403, 403), lambda ids: {"role": "owner"}
    ),
    # --- uploads and datasets
    "POST /api/v1/uploads": Case(ANYONE, lambda ids: {"filename": "a", "size": 1}),
    "GET /api/v1/uploads/<int:upload_id>": Case(OWN),
    "PUT /api/v1/uploads/<int:upload_id>/parts/<int:n>": Case(OWN, data=b"rows"),
    "POST /api/v1/uploads/<int:upload_id>/complete": Case(OWN, lambda ids: {}),
    "DELETE /api/v1/uploads/<int:upload_id>": Case(OWN),
    "GET /api/v1/datasets": Case(ANYONE),
    "POST /api/v1/datasets": Case(
        Rule("owner", 422, 422, 422),
        lambda ids: {"name": "x", "upload_id": ids["complete_upload_id"]},
    ),
    "POST /api/v1/datasets/sample": Case(ANYONE),
    "GET /api/v1/datasets/<int:dataset_id>": Case(SEEN),
    "PATCH /api/v1/datasets/<int:dataset_id>": Case(CHANGED, lambda ids: {"name": "x"}),
    "GET /api/v1/datasets/<int:dataset_id>/preview": Case(SEEN),
    "GET /api/v1/datasets/<int:dataset_id>/report": Case(SEEN),
    "GET /api/v1/datasets/<int:dataset_id>/stats": Case(SEEN),
    "GET /api/v1/datasets/<int:dataset_id>/download": Case(SEEN),
    "DELETE /api/v1/datasets/<int:dataset_id>": Case(CHANGED),
    # --- models
    "GET /api/v1/models": Case(ANYONE),
    "POST /api/v1/models": Case(
        ANYONE, lambda ids: {"name": "x", "source": "hub", "hub_id": "org/x"}
    ),
    "GET /api/v1/models/<int:model_id>": Case(SEEN),
    "PATCH /api/v1/models/<int:model_id>": Case(CHANGED, lambda ids: {"name": "x"}),
    "GET /api/v1/models/<int:model_id>/files": Case(SEEN),
    "GET /api/v1/models/<int:model_id>/lineage": Case(SEEN),
    "GET /api/v1/models/<int:model_id>/card": Case(SEEN),
    "GET /api/v1/models/<int:model_id>/download": Case(SEEN),
    "GET /api/v1/models/<int:model_id>/exports": Case(SEEN),
    "POST /api/v1/models/<int:model_id>/export": Case(CHANGED, lambda ids: {"format": "gguf"}),
    "DELETE /api/v1/models/<int:model_id>": Case(CHANGED),
    # --- training
    "GET /api/v1/trainers": Case(ANYONE),
    "GET /api/v1/presets": Case(ANYONE),
    "POST /api/v1/presets": Case(ANYONE, lambda ids: {"name": "x"}),
    "PATCH /api/v1/presets/<int:preset_id>": Case(CHANGED, lambda ids: {"name": "y"}),
    "DELETE /api/v1/presets/<int:preset_id>": Case(CHANGED),
    "GET /api/v1/training-jobs": Case(ANYONE),
    "POST /api/v1/training-jobs/validate": Case(ANYONE, lambda ids: {}),
    "POST /api/v1/training-jobs": Case(NAMED, training),
    "GET /api/v1/training-jobs/<int:job_id>": Case(SEEN, path=JOB),
    "PATCH /api/v1/training-jobs/<int:job_id>": Case(CHANGED, lambda ids: {"name": "x"}, JOB),
    "POST /api/v1/training-jobs/<int:job_id>/preflight": Case(CHANGED, lambda ids: {}, JOB),
    "POST /api/v1/training-jobs/<int:job_id>/start": Case(CHANGED, lambda ids: {}, JOB),
    "POST /api/v1/training-jobs/<int:job_id>/cancel": Case(CHANGED, lambda ids: {}, JOB),
    "POST /api/v1/training-jobs/<int:job_id>/resume": Case(CHANGED, lambda ids: {}, JOB),
    "POST /api/v1/training-jobs/<int:job_id>/duplicate": Case(CHANGED, lambda ids: {}, JOB),
    "GET /api/v1/training-jobs/<int:job_id>/metrics": Case(SEEN, path=JOB),
    "GET /api/v1/training-jobs/<int:job_id>/logs": Case(SEEN, path=JOB),
    "GET /api/v1/training-jobs/<int:job_id>/events": Case(SEEN, path=JOB),
    "GET /api/v1/training-jobs/<int:job_id>/samples": Case(SEEN, path=JOB),
    "GET /api/v1/training-jobs/<int:job_id>/checkpoints": Case(SEEN, path=JOB),
    "GET /api/v1/training-jobs/<int:job_id>/artifacts": Case(SEEN, path=JOB),
    "GET /api/v1/training-jobs/<int:job_id>/artifacts/<int:artifact_id>/download": Case(
        SEEN, path=JOB
    ),
    "DELETE /api/v1/training-jobs/<int:job_id>": Case(CHANGED, path=JOB),
    # --- evaluations and exports
    "GET /api/v1/evaluators": Case(ANYONE),
    "GET /api/v1/evaluations": Case(ANYONE),
    "POST /api/v1/evaluations": Case(NAMED_TO_CHANGE, training),
    "GET /api/v1/evaluations/<int:job_id>": Case(SEEN, path=EVALUATION),
    "POST /api/v1/evaluations/<int:job_id>/cancel": Case(CHANGED, lambda ids: {}, EVALUATION),
    "GET /api/v1/evaluations/<int:job_id>/logs": Case(SEEN, path=EVALUATION),
    "GET /api/v1/evaluations/<int:job_id>/events": Case(SEEN, path=EVALUATION),
    "DELETE /api/v1/evaluations/<int:job_id>": Case(CHANGED, path=EVALUATION),
    "GET /api/v1/exporters": Case(ANYONE),
    "GET /api/v1/exports": Case(ANYONE),
    "GET /api/v1/exports/<int:job_id>": Case(SEEN, path=EXPORT),
    "POST /api/v1/exports/<int:job_id>/cancel": Case(CHANGED, lambda ids: {}, EXPORT),
    "POST /api/v1/exports/<int:job_id>/retry": Case(CHANGED, lambda ids: {}, EXPORT),
    "GET /api/v1/exports/<int:job_id>/download": Case(SEEN, path=EXPORT),
    "GET /api/v1/exports/<int:job_id>/logs": Case(SEEN, path=EXPORT),
    "GET /api/v1/exports/<int:job_id>/events": Case(SEEN, path=EXPORT),
    "DELETE /api/v1/exports/<int:job_id>": Case(CHANGED, path=EXPORT),
    # --- the queue
    "GET /api/v1/queue": Case(ANYONE),
    "PATCH /api/v1/queue/<int:job_id>": Case(CHANGED, lambda ids: {"priority": "low"}, JOB),
    "POST /api/v1/queue/<int:job_id>/move": Case(
        CHANGED, lambda ids: {"before_id": ids["training_id"]}, JOB
    ),
    # --- workers
    "GET /api/v1/workers": Case(ANYONE),
    "GET /api/v1/workers/summary": Case(ANYONE),
    "POST /api/v1/workers": Case(ANYONE, lambda ids: {"name": "rig-2"}),
    "GET /api/v1/workers/<int:worker_id>": Case(SEEN),
    "GET /api/v1/workers/<int:worker_id>/metrics": Case(SEEN),
    "GET /api/v1/workers/<int:worker_id>/events": Case(SEEN),
    "PATCH /api/v1/workers/<int:worker_id>": Case(CHANGED, lambda ids: {"name": "x"}),
    "POST /api/v1/workers/<int:worker_id>/pause": Case(CHANGED, lambda ids: {}),
    "POST /api/v1/workers/<int:worker_id>/resume": Case(CHANGED, lambda ids: {}),
    "POST /api/v1/workers/<int:worker_id>/drain": Case(CHANGED, lambda ids: {}),
    "POST /api/v1/workers/<int:worker_id>/benchmark": Case(CHANGED, lambda ids: {}),
    "POST /api/v1/workers/<int:worker_id>/rotate-key": Case(GOVERNED, lambda ids: {}),
    "DELETE /api/v1/workers/<int:worker_id>": Case(GOVERNED),
    "GET /api/v1/master-keys": Case(ANYONE),
    "POST /api/v1/master-keys": Case(ANYONE, lambda ids: {"name": "rack"}),
    "DELETE /api/v1/master-keys/<int:key_id>": Case(GOVERNED, path={"key_id": "master_id"}),
    # --- chat
    "GET /api/v1/conversations": Case(ANYONE),
    "POST /api/v1/conversations": Case(NAMED, lambda ids: {"model_id": ids["model_id"]}),
    "GET /api/v1/conversations/<int:conversation_id>": Case(SEEN),
    "PATCH /api/v1/conversations/<int:conversation_id>": Case(CHANGED, lambda ids: {"title": "x"}),
    "POST /api/v1/conversations/<int:conversation_id>/messages": Case(
        CHANGED, lambda ids: {"content": "Hi"}
    ),
    "PATCH /api/v1/conversations/<int:conversation_id>/messages/<int:message_id>": Case(
        CHANGED, lambda ids: {"rating": 1}
    ),
    "DELETE /api/v1/conversations/<int:conversation_id>": Case(CHANGED),
    "POST /api/v1/compare": Case(NAMED, compare),
    "GET /v1/models": Case(ANYONE),
    "GET /v1/models/<path:name>": Case(SEEN, path={"name": "model_id"}),
    "POST /v1/chat/completions": Case(SEEN, chat),
    "POST /v1/completions": Case(SEEN, lambda ids: {"model": str(ids["model_id"]), "prompt": "Hi"}),
}


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def declared(app: Quart) -> dict[str, Endpoint]:
    return {name_of(endpoint): endpoint for endpoint in app.extensions["parsyn"].endpoints}


@pytest.fixture
async def world(people: dict[str, Person], context: Context) -> World:
    return matrix_world.build(people, context)


async def ask(who: Person, endpoint: Endpoint, world: World) -> int:
    """The status of one request with a body that is good for whoever may send it."""
    case = CASES[name_of(endpoint)]

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return str(world.ids[case.path.get(name, name)])

    path = re.sub(r"<(?:\w+:)?(\w+)>", value, endpoint.path)
    body = case.body(world.ids) if case.body else None
    more = {"data": case.data} if case.data is not None else {}
    headers = {"Authorization": f"Bearer {who.key}"} if who.key else {}
    if body is not None:
        more["json"] = body
    response = await who.client.open(path, method=endpoint.method, headers=headers, **more)
    return response.status_code


def test_every_route_has_an_expectation(app: Quart) -> None:
    assert set(declared(app)) == set(CASES)


async def test_what_is_not_public_wants_a_good_credential(app: Quart, world: World) -> None:
    keys = (
        "",
        matrix_world.WORKER_KEY,
        matrix_world.ENROLMENT_KEY,
        matrix_world.EXPIRED_KEY,
        matrix_world.REVOKED_KEY,
        matrix_world.DISABLED_KEY,
    )
    got = {
        (name, key): await ask(world.with_key(key), endpoint, world)
        for name, endpoint in declared(app).items()
        if endpoint.scope is not None
        for key in keys
    }
    assert {at: status for at, status in got.items() if status != 401} == {}


async def test_a_key_without_the_scope_is_refused(app: Quart, world: World) -> None:
    got = {
        name: await ask(world.without(endpoint.scope), endpoint, world)
        for name, endpoint in declared(app).items()
        if endpoint.scope is not None
    }
    assert {name: status for name, status in got.items() if status != 403} == {}


@pytest.mark.parametrize("who", ["other", "admin", "viewer"])
async def test_who_may_not_is_told_what_they_may_know(app: Quart, world: World, who: str) -> None:
    expected = {
        name: status
        for name, case in CASES.items()
        if (status := getattr(case.rule, who)) is not None
    }
    routes = declared(app)
    got = {name: await ask(world.people[who], routes[name], world) for name in expected}
    assert got == expected


async def test_the_least_who_may_gets_in(app: Quart, world: World) -> None:
    """Not 401, 403, 404; what the state or a missing worker says against it is another matter."""
    routes = declared(app)
    # What is deleted is asked last, the leaves of the tree first.
    order = sorted(CASES, key=lambda name: name.startswith("DELETE"))
    got = {
        name: await ask(world.people[CASES[name].rule.least], routes[name], world)
        for name in order
        if CASES[name].rule is not TICKET
    }
    wrong = {name: status for name, status in got.items() if status in (401, 403, 404, 500)}
    assert wrong == {}


async def test_a_bad_ticket_opens_nothing(app: Quart, world: World) -> None:
    routes = declared(app)
    for name, case in CASES.items():
        if case.rule is TICKET:
            for who in ("anonymous", "owner"):
                status = await ask(world.people[who], routes[name], world)
                assert status in (401, 403, 404), name
