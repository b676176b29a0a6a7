"""Set-up, login, sessions, and the account of who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from quart import Response, request

from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.hub.auth import CSRF_COOKIE, SESSION_COOKIE
from parsyn.hub.hub import hub, principal
from parsyn.hub.routing import Api, paging
from parsyn.services import accounts
from parsyn.store.users import User
from parsyn.wire.api.accounts import (
    LoginIn,
    MeOut,
    MePatch,
    RegisterIn,
    SessionOut,
    SessionStarted,
    SetupIn,
)
from parsyn.wire.api.base import Page
from parsyn.wire.states import Scope

api = Api("accounts")
R = TypeVar("R")
# argon2id is slow by design: a flood of logins must not take the threads of everyone else.
PASSWORDS = ThreadPoolExecutor(2, thread_name_prefix="password")


@api.endpoint("POST", "/setup", scope=None, body=SetupIn, answers=SessionStarted, status=201)
async def set_up(body: SetupIn) -> Response:
    """Create the owner's account with the link that the first start printed."""
    _refuse_foreign_pages()
    database = hub().context.database
    await database.read(accounts.check_setup, body.token)
    hashed = await _slowly(accounts.hash_password, body.password)
    user = await database.write(
        accounts.set_up, body.token, body.email, body.name, body.password, hashed
    )
    return await _started(user, 201)


@api.endpoint(
    "POST", "/auth/register", scope=None, body=RegisterIn, answers=SessionStarted, status=201
)
async def register(body: RegisterIn) -> Response:
    """Make an account, where this hub lets anyone."""
    _refuse_foreign_pages()
    context = hub().context
    if context.settings.text("hub.registration") != "open":
        raise ParsynError(ErrorCode.FORBIDDEN, "Ask an admin for an account: registration is off.")
    if await context.database.read(accounts.needs_setup):
        raise ParsynError(
            ErrorCode.INVALID_STATE, "This hub has no owner yet; use its set-up link first."
        )
    hashed = await _slowly(accounts.hash_password, body.password)
    user = await context.database.write(
        accounts.register, body.email, body.name, body.password, hashed
    )
    return await _started(user, 201)


@api.endpoint("POST", "/auth/login", scope=None, body=LoginIn, answers=SessionStarted)
async def log_in(body: LoginIn) -> Response:
    """A session for an address and its password."""
    _refuse_foreign_pages()
    context = hub().context
    attempts = context.settings.integer("hub.login_attempts")
    await context.database.write(accounts.begin_log_in, body.email, attempts)
    user_id, stored = await context.database.read(accounts.password_hash_of, body.email)
    if not await _slowly(accounts.verify, stored, body.password) or user_id is None:
        await context.database.write(accounts.note_failed_log_in, body.email)
        raise accounts.wrong_login()
    return await _started(await context.database.write(accounts.finish_log_in, user_id), 200)


@api.endpoint("POST", "/auth/logout", scope=Scope.READ, status=204)
async def log_out() -> Response:
    """End the session that asks."""
    who = principal()
    if who.session_id is None:
        raise ParsynError(ErrorCode.MALFORMED, "An API key has no session; delete the key instead.")
    await hub().context.database.write(accounts.end_session, who, who.session_id)
    answer = Response("", status=204)
    for name in (SESSION_COOKIE, CSRF_COOKIE):
        answer.delete_cookie(name)
    return answer


@api.endpoint("GET", "/me", scope=Scope.READ, answers=MeOut)
async def me() -> dict[str, Any]:
    """Who asks, with their projects."""
    return await hub().context.database.read(accounts.me, principal())


@api.endpoint("PATCH", "/me", scope=Scope.WRITE, body=MePatch, answers=MeOut)
async def change_me(body: MePatch) -> dict[str, Any]:
    """Change name, language, theme or password; a new password ends the other sessions."""
    database, who = hub().context.database, principal()
    changes = body.model_dump(exclude_unset=True, include={"name", "language", "theme"})
    kept = {key: value for key, value in changes.items() if value is not None or key == "language"}
    hashed = None
    if body.new_password is not None:
        stored = await database.read(accounts.may_change_password, who)
        if not await _slowly(accounts.verify, stored, body.current_password or ""):
            raise invalid(["current_password"], "The current password is wrong.")
        hashed = await _slowly(accounts.hash_password, body.new_password)
    return await database.write(accounts.change_me, who, kept, hashed)


@api.endpoint("GET", "/me/sessions", scope=Scope.READ, answers=Page[SessionOut])
async def sessions() -> dict[str, Any]:
    """The live sessions of who asks, the one used last first."""
    limit, offset = paging()
    found = await hub().context.database.read(accounts.sessions, principal())
    return {"items": found[offset : offset + limit], "total": len(found)}


@api.endpoint("DELETE", "/me/sessions", scope=Scope.WRITE, status=204)
async def end_other_sessions() -> None:
    """Log out everywhere else."""
    await hub().context.database.write(accounts.end_other_sessions, principal())


@api.endpoint("DELETE", "/me/sessions/<int:session_id>", scope=Scope.WRITE, status=204)
async def end_session(session_id: int) -> None:
    """Log one session out."""
    await hub().context.database.write(accounts.end_session, principal(), session_id)


async def _slowly(fn: Callable[..., R], *args: Any) -> R:
    return await asyncio.get_running_loop().run_in_executor(PASSWORDS, fn, *args)


async def _started(user: User, status: int) -> Response:
    context = hub().context
    days = context.settings.integer("hub.session_days")
    agent, ip = request.headers.get("User-Agent", ""), request.remote_addr or ""
    token, row = await context.database.write(accounts.start_session, user, days, agent, ip)
    started = SessionStarted(
        token=token, csrf_token=row.csrf_token, expires_at=row.expires_at, user=user
    )
    answer = Response(started.model_dump_json(), status=status, mimetype="application/json")
    secure = request.scheme == "https" or context.settings.url.startswith("https:")
    for name, value, hidden in (
        (SESSION_COOKIE, token, True),
        (CSRF_COOKIE, row.csrf_token, False),
    ):
        answer.set_cookie(
            name, value, max_age=days * 86_400, httponly=hidden, secure=secure, samesite="Lax"
        )
    return answer


def _refuse_foreign_pages() -> None:
    """A page elsewhere must not log its visitor in here as someone else."""
    if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
        raise ParsynError(ErrorCode.FORBIDDEN, "Another site sent this login; open the hub itself.")
