"""The guard before every request: who asks, and may they use this route."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from quart import Request, current_app, g, request

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.endpoint import Endpoint
from parsyn.hub.hub import hub
from parsyn.services import accounts
from parsyn.services.principal import Principal
from parsyn.wire.states import Role

SESSION_COOKIE = "parsyn_session"
CSRF_COOKIE = "parsyn_csrf"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
RANK = {Role.USER: 0, Role.ADMIN: 1, Role.OWNER: 2}


async def guard() -> None:
    """Runs before each request; raises 401, 403. An undeclared route is refused."""
    if request.routing_exception is not None:
        return
    declared = declared_endpoint()
    if declared is None:
        raise ParsynError(ErrorCode.FORBIDDEN, "This route declares no guard, so it is closed.")
    if declared.scope is None:
        return
    who = await authenticate(request)
    _check_csrf(who)
    _check_rights(who, declared)
    g.principal = who


def declared_endpoint() -> Endpoint | None:
    """The declaration of the route that matched."""
    view = current_app.view_functions.get(request.endpoint or "")
    return getattr(view, "parsyn_endpoint", None)


async def authenticate(req: Request) -> Principal:
    """The principal of a bearer token, else of the session cookie. Raises 401."""
    header = req.headers.get("Authorization")
    cookie = req.cookies.get(SESSION_COOKIE)
    if header is not None:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthenticated("Use `Authorization: Bearer <session token or API key>`.")
        return await find(token.strip(), "bearer")
    if cookie:
        return await find(cookie, "cookie")
    raise unauthenticated("Log in, or send `Authorization: Bearer <session token or API key>`.")


async def find(token: str, via: str) -> Principal:
    """The principal that a session token or API key stands for. Raises 401."""
    database = hub().context.database
    who = await database.read(accounts.find_principal, token, via)
    if who is None:
        raise unauthenticated("This login or key is not valid, has expired, or was revoked.")
    if accounts.wants_touch(who, token):
        await database.write(accounts.touch, who)
    return who


def unauthenticated(detail: str) -> ParsynError:
    return ParsynError(ErrorCode.UNAUTHENTICATED, detail)


def _check_csrf(who: Principal) -> None:
    if who.via != "cookie" or request.method in SAFE_METHODS:
        return
    sent = request.headers.get("X-CSRF-Token", "")
    if not hmac.compare_digest(sent.encode(), (who.csrf_token or "-").encode()):
        raise ParsynError(
            ErrorCode.CSRF_FAILED, "The X-CSRF-Token header does not fit; reload the page."
        )


def _check_rights(who: Principal, declared: Endpoint) -> None:
    if declared.scope not in who.scopes:
        raise ParsynError(ErrorCode.FORBIDDEN, f"This API key lacks the scope `{declared.scope}`.")
    if RANK[who.role] < RANK[declared.role]:
        raise ParsynError(ErrorCode.FORBIDDEN, f"This needs the role `{declared.role}`.")


def allowed_origins(extra: Iterable[str] = ()) -> frozenset[str]:
    """Origins from which a browser may open a socket: this hub's own addresses."""
    settings = hub().context.settings
    return frozenset({settings.url, settings.bound_url, *extra})
