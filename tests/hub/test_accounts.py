"""Set-up, login, sessions, the own account; and who may not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from quart import Quart

from parsyn.clock import shifted
from parsyn.config import Settings
from parsyn.services import accounts
from parsyn.services.context import Context
from tests.hub.conftest import PASSWORD, Answer, Person, read

LOGIN = {"email": "owner@example.org", "password": PASSWORD}


def setting(context: Context, name: str, value: str | int) -> None:
    """Change a setting of an open context."""
    values = {**context.settings.values, name: value}
    context.settings = Settings(context.settings.data_dir, values)


def set_up_body(context: Context) -> dict[str, str]:
    with context.database.transaction():
        token = accounts.create_setup_token()
    return {"token": token, "email": "First@Example.org", "name": "First", "password": PASSWORD}


async def test_setup_makes_the_owner_once(anonymous: Person, context: Context) -> None:
    assert (await anonymous.get("/system")).body["needs_setup"] is True
    body = set_up_body(context)
    made = await anonymous.post("/setup", body)
    assert made.status == 201
    assert made.body["user"]["role"] == "owner"
    assert made.body["user"]["email"] == "first@example.org"
    assert (await anonymous.get("/system")).body["needs_setup"] is False
    me = await replace(anonymous, key=made.body["token"]).get("/me")
    assert me.body["projects"] == [
        {"id": me.body["project_id"], "name": "First", "personal": True, "role": "admin"}
    ]
    again = await anonymous.post("/setup", body)
    assert (again.status, again.code) == (409, "invalid_state")


async def test_setup_wants_a_fresh_token(anonymous: Person, context: Context) -> None:
    body = set_up_body(context)
    wrong = await anonymous.post("/setup", {**body, "token": "guess"})
    assert (wrong.status, wrong.code) == (403, "forbidden")
    with shifted(accounts.SETUP_SECONDS + 1):
        late = await anonymous.post("/setup", body)
    assert late.status == 403
    assert "parsyn admin create" in late.body["detail"]


async def test_login_gives_a_session_and_cookies(owner: Person, anonymous: Person) -> None:
    answer = await anonymous.post("/auth/login", {**LOGIN, "email": "OWNER@example.org"})
    assert answer.status == 200
    cookies = {c.split("=")[0]: c for c in answer.headers.getlist("Set-Cookie")}
    assert "HttpOnly" in cookies["parsyn_session"]
    assert "HttpOnly" not in cookies["parsyn_csrf"]
    assert all("SameSite=Lax" in c and "Secure" not in c for c in cookies.values())
    assert answer.body["csrf_token"] in cookies["parsyn_csrf"]
    me = await replace(anonymous, key=answer.body["token"]).get("/me")
    assert me.body["email"] == "owner@example.org"


async def test_cookies_are_secure_when_the_hub_is_on_https(
    owner: Person, anonymous: Person, context: Context
) -> None:
    setting(context, "hub.url", "https://hub.example.org")
    answer = await anonymous.post("/auth/login", LOGIN)
    assert all("Secure" in cookie for cookie in answer.headers.getlist("Set-Cookie"))


async def test_a_cookie_needs_the_csrf_token_to_change_things(app: Quart, owner: Person) -> None:
    browser = app.test_client()
    login = await read(await browser.post("/api/v1/auth/login", json=LOGIN))
    assert (await browser.get("/api/v1/me")).status_code == 200
    without = await read(await browser.patch("/api/v1/me", json={"name": "Eve"}))
    assert (without.status, without.code) == (403, "csrf_failed")
    token = {"X-CSRF-Token": login.body["csrf_token"]}
    good = await browser.patch("/api/v1/me", json={"name": "Ann"}, headers=token)
    assert good.status_code == 200
    assert (await browser.post("/api/v1/auth/logout", headers=token)).status_code == 204
    assert (await browser.get("/api/v1/me")).status_code == 401


async def test_a_login_that_another_site_sends_is_refused(owner: Person, anonymous: Person) -> None:
    answer = await anonymous.post("/auth/login", LOGIN, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403


@pytest.mark.parametrize(
    "login",
    [
        {"email": "owner@example.org", "password": "wrong horse"},
        {"email": "nobody@example.org", "password": PASSWORD},
    ],
)
async def test_a_wrong_login_does_not_say_what_was_wrong(
    owner: Person, anonymous: Person, login: dict[str, str]
) -> None:
    answer = await anonymous.post("/auth/login", login)
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.body["detail"] == "The address or the password is wrong."


async def test_guessing_is_slowed_down_until_the_window_is_over(
    owner: Person, anonymous: Person, context: Context
) -> None:
    setting(context, "hub.login_attempts", 2)
    wrong = {**LOGIN, "password": "wrong horse"}
    assert [(await anonymous.post("/auth/login", wrong)).status for _ in range(3)] == [
        401,
        401,
        429,
    ]
    right = await anonymous.post("/auth/login", LOGIN)
    assert (right.status, right.code) == (429, "rate_limited")
    assert int(right.headers["Retry-After"]) > 0
    with shifted(accounts.LOGIN_WINDOW_SECONDS + 1):
        assert (await anonymous.post("/auth/login", LOGIN)).status == 200
        # A good login forgets the bad ones.
        assert (await anonymous.post("/auth/login", wrong)).status == 401


async def test_registration_is_closed_unless_opened(
    owner: Person, anonymous: Person, context: Context
) -> None:
    body = {"email": "new@example.org", "name": "New", "password": PASSWORD}
    closed = await anonymous.post("/auth/register", body)
    assert (closed.status, closed.code) == (403, "forbidden")
    setting(context, "hub.registration", "open")
    made = await anonymous.post("/auth/register", body)
    assert (made.status, made.body["user"]["role"]) == (201, "user")
    taken = await anonymous.post("/auth/register", {**body, "email": "NEW@example.org"})
    assert (taken.status, taken.body["errors"][0]["loc"]) == (422, ["email"])


async def test_nobody_registers_before_there_is_an_owner(
    anonymous: Person, context: Context
) -> None:
    setting(context, "hub.registration", "open")
    body = {"email": "new@example.org", "name": "New", "password": PASSWORD}
    assert (await anonymous.post("/auth/register", body)).status == 409


async def test_the_password_changes_only_with_the_old_one(owner: Person, anonymous: Person) -> None:
    first, second = [
        replace(anonymous, key=(await anonymous.post("/auth/login", LOGIN)).body["token"])
        for _ in range(2)
    ]
    new = {"new_password": "battery staple"}
    for body in (new, {**new, "current_password": "wrong"}):
        refused = await first.patch("/me", body)
        assert (refused.status, refused.body["errors"][0]["loc"]) == (422, ["current_password"])
    changed = {**new, "current_password": PASSWORD}
    assert (await owner.patch("/me", changed)).status == 403, "an API key must not do it"
    assert (await first.patch("/me", changed)).status == 200
    assert (await first.get("/me")).status == 200
    assert (await second.get("/me")).status == 401, "the other session must have ended"
    assert (await anonymous.post("/auth/login", LOGIN)).status == 401


async def test_name_language_and_theme(owner: Person) -> None:
    body = {"name": "Ann", "language": "fr", "theme": "dark"}
    changed = await owner.patch("/me", body)
    assert {key: changed.body[key] for key in body} == body
    kept = await owner.patch("/me", {"language": None, "name": None})
    assert (kept.body["name"], kept.body["language"]) == ("Ann", None)
    assert (await owner.patch("/me", {"theme": "pink"})).status == 422
    assert (await owner.patch("/me", {"role": "owner"})).status == 422


async def test_sessions_are_listed_and_ended_by_their_user_only(
    owner: Person, other: Person, anonymous: Person
) -> None:
    tokens = [(await anonymous.post("/auth/login", LOGIN)).body["token"] for _ in range(3)]
    first = replace(anonymous, key=tokens[0])
    listed = (await first.get("/me/sessions")).body
    assert listed["total"] == 3
    assert [s["current"] for s in listed["items"]].count(True) == 1
    ended = next(s["id"] for s in listed["items"] if not s["current"])
    assert (await other.delete(f"/me/sessions/{ended}")).status == 404
    assert (await first.delete(f"/me/sessions/{ended}")).status == 204
    assert (await first.delete(f"/me/sessions/{ended}")).status == 404
    assert (await first.delete("/me/sessions")).status == 204
    assert [s["current"] for s in (await first.get("/me/sessions")).body["items"]] == [True]
    assert (await owner.post("/auth/logout")).status == 400, "a key has no session"


async def test_a_session_ends_when_it_is_not_used(
    owner: Person, anonymous: Person, context: Context
) -> None:
    token = (await anonymous.post("/auth/login", LOGIN)).body["token"]
    asking = replace(anonymous, key=token)
    with shifted(13 * 86_400):
        assert (await asking.get("/me")).status == 200
        with shifted(13 * 86_400):
            assert (await asking.get("/me")).status == 200
    with shifted(60 * 86_400):
        assert (await asking.get("/me")).status == 401


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Basic YTpi", "Bearer pss_x", "Bearer psn_x", "Bearer wkr_x", "x"],
)
async def test_credentials_that_are_none(anonymous: Person, header: str) -> None:
    answer: Answer = await anonymous.get("/me", headers={"Authorization": header})
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_bad_bearer_is_not_rescued_by_a_good_cookie(app: Quart, owner: Person) -> None:
    browser = app.test_client()
    await browser.post("/api/v1/auth/login", json=LOGIN)
    answer = await browser.get("/api/v1/me", headers={"Authorization": "Bearer psn_guess"})
    assert answer.status_code == 401
