"""Users as an admin sees them."""

from __future__ import annotations

import pytest

from parsyn.services.context import Context
from parsyn.store.users import User
from parsyn.wire.states import Role
from tests.hub.conftest import PASSWORD, Person


async def test_admins_see_every_user(admin: Person, other: Person) -> None:
    listed = (await admin.get("/admin/users")).body
    assert listed["total"] == 3
    assert [user["email"] for user in listed["items"]] == [
        "owner@example.org",
        "admin@example.org",
        "other@example.org",
    ]
    assert "password_hash" not in listed["items"][0]
    found = (await admin.get("/admin/users", query_string={"q": "oth"})).body
    assert [user["email"] for user in found["items"]] == ["other@example.org"]
    assert (await other.get("/admin/users")).status == 403


@pytest.mark.parametrize(
    ("who", "target", "body", "status"),
    [
        ("owner", "other", {"role": "owner"}, 200),
        ("owner", "admin", {"role": "user"}, 200),
        ("admin", "other", {"role": "admin"}, 200),
        ("admin", "other", {"role": "owner"}, 403),
        ("admin", "owner", {"role": "user"}, 403),
        ("admin", "owner", {"disabled": True}, 403),
        ("admin", "admin", {"disabled": True}, 409),
        ("owner", "owner", {"role": "admin"}, 409),
        ("owner", "owner", {"disabled": True}, 409),
        ("other", "other", {"role": "admin"}, 403),
        ("owner", "other", {"role": "king"}, 422),
    ],
)
async def test_who_may_change_whom(
    owner: Person,
    admin: Person,
    other: Person,
    who: str,
    target: str,
    body: dict[str, object],
    status: int,
) -> None:
    people = {"owner": owner, "admin": admin, "other": other}
    answer = await people[who].patch(f"/admin/users/{people[target].user_id}", body)
    assert answer.status == status


async def test_an_owner_may_go_once_there_is_another(owner: Person, other: Person) -> None:
    assert (await owner.patch(f"/admin/users/{other.user_id}", {"role": "owner"})).status == 200
    assert (await owner.patch(f"/admin/users/{owner.user_id}", {"role": "user"})).status == 200
    assert (await owner.get("/admin/users")).status == 403


async def test_a_disabled_owner_does_not_count_as_one(
    owner: Person, other: Person, context: Context
) -> None:
    with context.database.transaction():
        User.update(role=Role.OWNER, disabled=True).where(User.id == other.user_id).execute()
    answer = await owner.patch(f"/admin/users/{owner.user_id}", {"role": "user"})
    assert (answer.status, answer.code) == (409, "invalid_state")


async def test_a_disabled_user_is_out_at_once(
    owner: Person, other: Person, anonymous: Person
) -> None:
    login = {"email": "other@example.org", "password": PASSWORD}
    token = (await anonymous.post("/auth/login", login)).body["token"]
    session = {"Authorization": f"Bearer {token}"}
    assert (await anonymous.get("/me", headers=session)).status == 200
    changed = await owner.patch(f"/admin/users/{other.user_id}", {"disabled": True})
    assert changed.body["disabled"] is True
    assert (await anonymous.get("/me", headers=session)).status == 401
    assert (await other.get("/me")).status == 401, "keys of a disabled user must not work"
    refused = await anonymous.post("/auth/login", login)
    assert (refused.status, "disabled" in refused.body["detail"]) == (401, True)
    await owner.patch(f"/admin/users/{other.user_id}", {"disabled": False})
    assert (await other.get("/me")).status == 200


async def test_a_user_who_is_not_there(owner: Person) -> None:
    assert (await owner.patch("/admin/users/9999", {"role": "user"})).status == 404
