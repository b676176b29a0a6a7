"""Who may do what with conversations, and what bodies are refused."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.services.context import Context
from parsyn.store.models import Model
from parsyn.wire.states import ModelSource, ModelState, Scope
from tests.hub.conftest import Person, make_key


def make_model(context: Context, owner: Person, name: str = "small") -> int:
    with context.database.transaction():
        row = Model.create(
            user=owner.user_id,
            project=owner.project_id,
            name=name,
            slug=name,
            state=ModelState.READY,
            source=ModelSource.IMPORT,
            formats=["hf"],
        )
        return int(row.id)


@pytest.fixture
def model(context: Context, owner: Person) -> int:
    return make_model(context, owner)


@pytest.fixture
async def path(owner: Person, model: int) -> str:
    """A conversation in the owner's project."""
    made = await owner.post("/conversations", {"model_id": model, "title": "Mine"})
    assert made.status == 201
    return f"/conversations/{made.body['id']}"


WHO = ("anonymous", "other", "admin", "viewer", "editor", "owner")
RIGHTS: list[tuple[str, str, Any, tuple[int, ...]]] = [
    ("GET", "", None, (401, 404, 404, 200, 200, 200)),
    ("PATCH", "", {"title": "New"}, (401, 404, 404, 403, 200, 200)),
    # 503: allowed, but there is no worker in these tests.
    ("POST", "/messages", {"content": "hi"}, (401, 404, 404, 403, 503, 503)),
    ("DELETE", "", None, (401, 404, 404, 403, 204, 404)),
]


@pytest.mark.parametrize(("method", "below", "body", "statuses"), RIGHTS)
async def test_who_may(
    path: str, method: str, below: str, body: Any, statuses: tuple[int, ...], anonymous: Person,
    other: Person, admin: Person, viewer: Person, editor: Person, owner: Person,
) -> None:  # fmt: skip
    people = (anonymous, other, admin, viewer, editor, owner)
    answers = [await person.ask(method, path + below, body) for person in people]
    got = dict(zip(WHO, (answer.status for answer in answers), strict=True))
    assert got == dict(zip(WHO, statuses, strict=True))
    assert all(answer.body["detail"] for answer in answers if answer.status >= 400)


async def test_a_list_holds_what_one_may_see(path: str, owner: Person, other: Person) -> None:
    mine = await owner.get("/conversations")
    assert (mine.body["total"], mine.body["items"][0]["title"]) == (1, "Mine")
    theirs = await other.get("/conversations")
    assert (theirs.body["total"], theirs.body["items"]) == (0, [])


async def test_lists_are_paged_and_narrowed_the_last_used_first(
    context: Context, owner: Person, model: int
) -> None:
    another = make_model(context, owner, "another")
    made = [
        (await owner.post("/conversations", {"model_id": id, "title": f"c{n}"})).body["id"]
        for n, id in enumerate([model, another, model])
    ]
    page = (await owner.get("/conversations?limit=2")).body
    assert (page["total"], [item["id"] for item in page["items"]]) == (3, [made[2], made[1]])
    page = (await owner.get("/conversations?limit=2&offset=2")).body
    assert [item["id"] for item in page["items"]] == [made[0]]
    page = (await owner.get(f"/conversations?model_id={another}")).body
    assert (page["total"], page["items"][0]["id"]) == (1, made[1])
    assert (await owner.get("/conversations?model_id=x")).status == 422


async def test_an_id_in_a_body_that_is_not_theirs_is_422(
    context: Context, other: Person, owner: Person, model: int
) -> None:
    answer = await other.post("/conversations", {"model_id": model})
    assert answer.status == 422
    assert answer.body["errors"][0]["loc"] == ["model_id"]
    own = make_model(context, other, "theirs")
    answer = await other.post("/conversations", {"model_id": own, "project_id": owner.project_id})
    assert answer.status == 422
    assert answer.body["errors"][0]["loc"] == ["project_id"]
    messages = [{"role": "user", "content": "hi"}]
    answer = await other.post("/compare", {"model_ids": [own, model], "messages": messages})
    assert answer.status == 422
    assert answer.body["errors"][0]["loc"] == ["model_ids"]


async def test_a_viewer_keeps_conversations_of_their_own(viewer: Person, model: int) -> None:
    made = await viewer.post("/conversations", {"model_id": model})
    assert made.status == 201
    assert made.body["project_id"] != viewer.project_id, "the personal one, where they may write"
    asked = await viewer.post(f"/conversations/{made.body['id']}/messages", {"content": "hi"})
    assert asked.status == 503, "the model may be asked, on a worker of their own"


async def test_changes(owner: Person, path: str, context: Context) -> None:
    another = make_model(context, owner, "another")
    changed = await owner.patch(
        path, {"model_id": another, "system_prompt": " Be brief. ", "params": {"top_k": 3}}
    )
    assert changed.body["model_id"] == another
    assert changed.body["system_prompt"] == " Be brief. "
    assert changed.body["params"]["top_k"] == 3
    assert changed.body["title"] == "Mine"
    cleared = await owner.patch(path, {"system_prompt": None, "params": {}})
    assert cleared.body["system_prompt"] is None
    assert cleared.body["params"]["top_k"] is None
    assert (await owner.patch(path, {"titel": "x"})).status == 422


async def test_a_conversation_whose_model_is_deleted_asks_for_another(
    owner: Person, path: str, model: int, context: Context
) -> None:
    with context.database.transaction():
        Model.delete().where(Model.id == model).execute()
    answer = await owner.post(f"{path}/messages", {"content": "hi"})
    assert (answer.status, answer.code) == (409, "invalid_state")
    assert "choose another" in answer.body["detail"]


@pytest.mark.parametrize(
    ("scopes", "get", "create", "ask"),
    [
        ([Scope.READ], 200, 403, 403),
        ([Scope.READ, Scope.WRITE], 200, 201, 403),
        ([Scope.INFERENCE], 403, 403, 503),
    ],
)
async def test_scopes_of_a_key(
    owner: Person, path: str, model: int, context: Context, scopes: list[Scope], get: int,
    create: int, ask: int,
) -> None:  # fmt: skip
    owner.key = make_key(context, owner.user_id, scopes)
    assert (await owner.get(path)).status == get
    assert (await owner.post("/conversations", {"model_id": model})).status == create
    assert (await owner.post(f"{path}/messages", {"content": "hi"})).status == ask


BAD: list[tuple[dict[str, Any], list[str | int]]] = [
    ({}, ["model_id"]),
    ({"model_id": "x"}, ["model_id"]),
    ({"model_id": 1, "title": ""}, ["title"]),
    ({"model_id": 1, "params": {"temperature": 3}}, ["params", "temperature"]),
    ({"model_id": 1, "params": {"temperature": "NaN"}}, ["params", "temperature"]),
    ({"model_id": 1, "params": {"stop": [""]}}, ["params", "stop", 0]),
    ({"model_id": 1, "params": {"stop": ["x"] * 9}}, ["params", "stop"]),
    ({"model_id": 1, "params": {"seed": 2**63}}, ["params", "seed"]),
    ({"model_id": 1, "params": {"temp": 1}}, ["params", "temp"]),
    ({"model_id": 1, "system_prompt": "a\x00"}, ["system_prompt"]),
]


async def test_bad_bodies_are_422_at_the_field(owner: Person) -> None:
    for body, loc in BAD:
        answer = await owner.post("/conversations", body)
        assert (answer.status, answer.code) == (422, "validation_failed"), body
        assert answer.body["errors"][0]["loc"] == loc


async def test_ids_beyond_every_column_are_no_server_error(owner: Person, path: str) -> None:
    assert (await owner.post("/conversations", {"model_id": 2**70})).status == 422
    assert (await owner.get(f"/conversations/{2**70}")).status in (404, 422)
