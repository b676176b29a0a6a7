"""API keys: what they may do, and never more than their owner."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from parsyn.clock import now, shifted
from parsyn.services.context import Context
from parsyn.store.users import ApiKey, User
from parsyn.wire.states import Role, Scope
from tests.hub.conftest import Person, make_key


async def test_a_key_is_shown_once_and_works_until_deleted(owner: Person) -> None:
    made = await owner.post("/api-keys", {"name": "ci", "scopes": ["write", "read"]})
    assert made.status == 201
    key = made.body["key"]
    assert key.startswith("psn_")
    assert made.body["scopes"] == ["read", "write"]
    assert key.startswith(made.body["prefix"])
    listed = (await owner.get("/api-keys")).body["items"][0]
    assert (listed["id"], listed["name"]) == (made.body["id"], "ci")
    assert "key" not in listed
    assert key not in str(listed)
    asking = replace(owner, key=key)
    assert (await asking.get("/me")).status == 200
    assert (await owner.delete(f"/api-keys/{made.body['id']}")).status == 204
    assert (await asking.get("/me")).status == 401
    assert (await owner.delete(f"/api-keys/{made.body['id']}")).status == 404


async def test_the_database_holds_no_key(owner: Person, context: Context) -> None:
    key = (await owner.post("/api-keys", {"name": "ci", "scopes": ["read"]})).body["key"]
    with context.database.connection():
        rows = [str(row.__data__) for row in ApiKey.select()]
    assert not any(key in row for row in rows)


async def test_keys_are_their_users_own(owner: Person, other: Person) -> None:
    made = (await owner.post("/api-keys", {"name": "ci", "scopes": ["read"]})).body
    assert (await other.delete(f"/api-keys/{made['id']}")).status == 404
    mine = {key["id"] for key in (await other.get("/api-keys")).body["items"]}
    assert made["id"] not in mine


@pytest.mark.parametrize(
    ("scopes", "wanted", "status"),
    [
        ([Scope.READ, Scope.WRITE], ["read"], 201),
        ([Scope.READ, Scope.WRITE], ["read", "inference"], 403),
        ([Scope.READ], ["read"], 403),
        ([Scope.WRITE], ["admin"], 403),
    ],
)
async def test_a_key_makes_no_key_wider_than_itself(
    owner: Person, context: Context, scopes: list[Scope], wanted: list[str], status: int
) -> None:
    asking = replace(owner, key=make_key(context, owner.user_id, scopes))
    assert (await asking.post("/api-keys", {"name": "k", "scopes": wanted})).status == status


async def test_only_an_admins_key_has_the_scope_admin(owner: Person, other: Person) -> None:
    body = {"name": "k", "scopes": ["admin"]}
    assert (await other.post("/api-keys", body)).status == 403
    assert (await owner.post("/api-keys", body)).status == 201


async def test_an_admins_key_loses_its_power_with_the_role(admin: Person, context: Context) -> None:
    assert (await admin.get("/admin/users")).status == 200
    with context.database.transaction():
        User.update(role=Role.USER).where(User.id == admin.user_id).execute()
    assert (await admin.get("/admin/users")).status == 403


async def test_a_key_expires_and_so_do_the_keys_it_made(owner: Person) -> None:
    until = datetime.fromtimestamp(now() + 3600, UTC).isoformat()
    short = {"name": "short", "scopes": ["read", "write"], "expires_at": until}
    maker = replace(owner, key=(await owner.post("/api-keys", short)).body["key"])
    child = await maker.post("/api-keys", {"name": "child", "scopes": ["read"]})
    assert child.body["expires_at"][:19] == until[:19]
    asking = replace(owner, key=child.body["key"])
    assert (await asking.get("/me")).status == 200
    with shifted(3601):
        assert (await asking.get("/me")).status == 401
        assert (await maker.get("/me")).status == 401


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"name": "k", "scopes": []}, ["scopes"]),
        ({"name": "k", "scopes": ["root"]}, ["scopes", 0]),
        ({"name": " ", "scopes": ["read"]}, ["name"]),
        ({"scopes": ["read"]}, ["name"]),
        ({"name": "k", "scopes": ["read"], "expires_at": "2001-01-01T00:00:00Z"}, ["expires_at"]),
    ],
)
async def test_keys_that_are_refused(
    owner: Person, body: dict[str, object], loc: list[object]
) -> None:
    answer = await owner.post("/api-keys", body)
    assert (answer.status, answer.body["errors"][0]["loc"]) == (422, loc)


async def test_ids_that_no_database_can_hold_are_the_ids_of_nothing(owner: Person) -> None:
    assert (await owner.delete(f"/api-keys/{10**30}")).status == 404
    assert (await owner.get("/api-keys", query_string={"offset": 10**30})).status == 422
