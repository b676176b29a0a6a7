"""Accounts: first-run set-up, login, sessions, profile."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.services import audit
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.projects import Project, ProjectMember
from parsyn.store.users import ApiKey, LoginFailure, Session, SetupToken, User
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.states import ProjectRole, Role, Scope

SETUP_SECONDS = 30 * 60
TOUCH_SECONDS = 60
LOGIN_WINDOW_SECONDS = 15 * 60
hasher = PasswordHasher()
# Verified against when there is no such account, so that an answer's time says nothing.
NOBODY = hasher.hash("nobody")


def digest(secret: str) -> str:
    """How random secrets are stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def needs_setup() -> bool:
    """True until the first account exists."""
    return not User.select().exists()


def create_setup_token() -> str:
    """A one-time token for the first account; each hub process may print one of its own."""
    SetupToken.delete().where(SetupToken.expires_at < now()).execute()
    token = secrets.token_urlsafe(24)
    SetupToken.create(token_hash=digest(token), expires_at=now() + SETUP_SECONDS)
    return token


def check_setup(token: str) -> None:
    """Raises 403 for a bad token, 409 when the hub is set up already."""
    if not needs_setup():
        raise ParsynError(ErrorCode.INVALID_STATE, "This hub is set up already; log in instead.")
    row = SetupToken.get_or_none(SetupToken.token_hash == digest(token))
    if row is None or row.used_at is not None or row.expires_at < now():
        raise ParsynError(
            ErrorCode.FORBIDDEN,
            "This set-up link is used up or has expired. Restart `parsyn serve` for a new one, "
            "or run `parsyn admin create`.",
        )


def set_up(
    token: str, email: str, name: str, password: str, password_hash: str | None = None
) -> User:
    """Create the owner with a set-up token. Raises as `check_setup`."""
    check_setup(token)
    SetupToken.update(used_at=now()).where(SetupToken.token_hash == digest(token)).execute()
    user = create_user(email, name, password, Role.OWNER, password_hash)
    audit.record(user, AuditAction.SET_UP, f"user:{user.id}")
    return user


def register(email: str, name: str, password: str, password_hash: str) -> User:
    """Somebody makes an account by themselves. Raises as `create_user`."""
    user = create_user(email, name, password, password_hash=password_hash)
    audit.record(user, AuditAction.REGISTERED, f"user:{user.id}")
    return user


def hash_password(password: str) -> str:
    """argon2id; takes a tenth of a second, so do it outside a database call."""
    return hasher.hash(password)


def create_user(
    email: str, name: str, password: str, role: Role = Role.USER, password_hash: str | None = None
) -> User:
    """A user with a personal project. Raises 422 when the address is taken."""
    email = email.strip().lower()
    if User.select().where(User.email == email).exists():
        raise invalid(["email"], "There is an account with this address already.")
    user = User.create(
        email=email, name=name, password_hash=password_hash or hash_password(password), role=role
    )
    project = Project.create(name=name, owner=user)
    ProjectMember.create(project=project, user=user, role=ProjectRole.ADMIN)
    return user


def begin_log_in(email: str, attempts: int) -> None:
    """Count an attempt before the password is looked at, so that parallel guesses count too.

    Commit it before the password is verified. Raises 429 after `attempts` failures in a quarter of
    an hour.
    """
    email = email.strip().lower()
    since = now() - LOGIN_WINDOW_SECONDS
    LoginFailure.delete().where(LoginFailure.created_at < since).execute()
    failures = LoginFailure.select().where(LoginFailure.email == email)
    if failures.count() >= attempts:
        raise ParsynError(
            ErrorCode.RATE_LIMITED,
            "Too many failed logins for this account; wait a quarter of an hour.",
            retry_after=LOGIN_WINDOW_SECONDS,
        )
    LoginFailure.create(email=email)


def password_hash_of(email: str) -> tuple[int | None, str]:
    """(user id, hash) of an account; where there is none, a hash that takes as long to check."""
    user = User.get_or_none(User.email == email.strip().lower())
    return (None, NOBODY) if user is None else (int(user.id), str(user.password_hash))


def verify(password_hash: str, password: str) -> bool:
    """Whether the password fits. Takes a tenth of a second and no database."""
    try:
        return hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def wrong_login() -> ParsynError:
    return ParsynError(ErrorCode.UNAUTHENTICATED, "The address or the password is wrong.")


def finish_log_in(user_id: int) -> User:
    """Forget the account's failures and note the login, once the password was right.

    Raises 401 for an account that is disabled.
    """
    user = User.get_by_id(user_id)
    if user.disabled:
        raise ParsynError(ErrorCode.UNAUTHENTICATED, "This account is disabled; ask an admin.")
    LoginFailure.delete().where(LoginFailure.email == user.email).execute()
    User.update(last_login_at=now()).where(User.id == user_id).execute()
    audit.record(user, AuditAction.LOGGED_IN, f"user:{user_id}")
    return user


def note_failed_log_in(email: str) -> None:
    """Write down an attempt with a wrong address or password."""
    audit.record_unknown(AuditAction.LOGIN_FAILED, "somebody", email=email.strip().lower()[:250])


def start_session(user: User, days: int, user_agent: str, ip: str) -> tuple[str, Session]:
    """(token, row) of a new session; the token is shown once."""
    token = f"pss_{secrets.token_urlsafe(32)}"
    at = now()
    row = Session.create(
        user=user,
        token_hash=digest(token),
        csrf_token=secrets.token_urlsafe(24),
        user_agent=user_agent[:250],
        ip=ip[:60],
        last_used_at=at,
        expires_at=at + days * 86_400,
    )
    return token, row


def find_principal(token: str, via: str) -> Principal | None:
    """Who a session token or an API key stands for; None for anything else, worker keys too."""
    if token.startswith("pss_"):
        return _session_principal(token, via)
    if token.startswith("psn_") and via == "bearer":
        return _key_principal(token)
    return None


def _session_principal(token: str, via: str) -> Principal | None:
    row = Session.get_or_none((Session.token_hash == digest(token)) & (Session.expires_at > now()))
    if row is None or row.user.disabled:
        return None
    return Principal(
        user_id=row.user_id,
        role=Role(row.user.role),
        scopes=ALL_SCOPES,
        via=via,
        session_id=row.id,
        csrf_token=row.csrf_token,
    )


def _key_principal(token: str) -> Principal | None:
    row = ApiKey.get_or_none(ApiKey.key_hash == digest(token))
    if row is None or row.user.disabled:
        return None
    if row.expires_at is not None and row.expires_at <= now():
        return None
    return Principal(
        user_id=row.user_id,
        role=Role(row.user.role),
        scopes=frozenset(Scope(scope) for scope in row.scopes),
        via="bearer",
        api_key_id=row.id,
    )


_touched: dict[str, float] = {}


def wants_touch(who: Principal, token: str) -> bool:
    """True at most once a minute for each credential, so that reads stay reads."""
    key = f"{who.session_id}:{who.api_key_id}"
    if now() - _touched.get(key, 0.0) < TOUCH_SECONDS:
        return False
    _touched[key] = now()
    return True


def touch(who: Principal) -> None:
    """Note that the credential was used; a session's end moves with it."""
    at = now()
    if who.session_id is not None:
        Session.update(
            last_used_at=at, expires_at=Session.expires_at + (at - Session.last_used_at)
        ).where(Session.id == who.session_id).execute()
    if who.api_key_id is not None:
        ApiKey.update(last_used_at=at).where(ApiKey.id == who.api_key_id).execute()


def me(who: Principal) -> dict[str, Any]:
    """The user with their projects, as `MeOut` wants it."""
    user = User.get_by_id(who.user_id)
    rows = (
        ProjectMember.select(ProjectMember, Project)
        .join(Project)
        .where(ProjectMember.user == user)
        .order_by(Project.id)
    )
    projects = [
        {
            "id": row.project.id,
            "name": row.project.name,
            "personal": row.project.owner_id is not None,
            "role": row.role,
        }
        for row in rows
    ]
    personal = next(p["id"] for p in projects if p["personal"])
    return {**user.__data__, "projects": projects, "project_id": personal}


def may_change_password(who: Principal) -> str:
    """The hash that the current password must fit. Raises 403 for a key."""
    if who.session_id is None:
        raise ParsynError(ErrorCode.FORBIDDEN, "Log in to change the password; a key cannot.")
    return str(User.get_by_id(who.user_id).password_hash)


def change_me(
    who: Principal, changes: dict[str, Any], password_hash: str | None = None
) -> dict[str, Any]:
    """Change name, language, theme, and and with its hash the password."""
    if password_hash is not None:
        changes = {**changes, "password_hash": password_hash}
        # Whoever knew the old password is logged out.
        end_other_sessions(who)
        audit.record(who, AuditAction.PASSWORD_CHANGED, f"user:{who.user_id}")
    if changes:
        User.update(**changes).where(User.id == who.user_id).execute()
    return me(who)


def sessions(who: Principal) -> list[dict[str, Any]]:
    """The user's live sessions, newest first."""
    rows = (
        Session.select()
        .where((Session.user == who.user_id) & (Session.expires_at > now()))
        .order_by(Session.last_used_at.desc())
    )
    return [{**row.__data__, "current": row.id == who.session_id} for row in rows]


def end_session(who: Principal, session_id: int) -> None:
    """Log one session out. Raises 404 when it is not this user's."""
    ended = (
        Session.delete().where((Session.id == session_id) & (Session.user == who.user_id)).execute()
    )
    if not ended:
        raise not_found("session")
    audit.record(who, AuditAction.LOGGED_OUT, f"session:{session_id}")


def end_other_sessions(who: Principal) -> None:
    """Log out every session of this user but the one that asks."""
    Session.delete().where(
        (Session.user == who.user_id) & (Session.id != (who.session_id or 0))
    ).execute()
