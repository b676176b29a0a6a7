"""Set-up, login, users, sessions, API keys, projects."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from parsyn.wire.api.base import In, Name, Out, Time
from parsyn.wire.states import ProjectRole, Role, Scope

Email = Annotated[str, Field(min_length=3, max_length=254, pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")]
Password = Annotated[str, Field(min_length=8, max_length=1024)]


class SetupIn(In):
    token: str
    email: Email
    name: Name
    password: Password


class LoginIn(In):
    email: str = Field(max_length=254)
    password: str = Field(max_length=1024)


class RegisterIn(In):
    email: Email
    name: Name
    password: Password


class ProjectOut(Out):
    id: int
    name: str
    personal: bool
    role: ProjectRole


class UserOut(Out):
    id: int
    email: str
    name: str
    role: Role
    language: Literal["en", "fr"] | None = None
    theme: Literal["light", "dark", "system"] = "system"
    created_at: Time


class MeOut(UserOut):
    """`project_id` is the personal project."""

    project_id: int
    projects: list[ProjectOut]


class MePatch(In):
    name: Name | None = None
    language: Literal["en", "fr"] | None = None
    theme: Literal["light", "dark", "system"] | None = None
    current_password: str | None = None
    new_password: Password | None = None


class SessionStarted(Out):
    """The browser gets the same session as a cookie, and `csrf_token` in a readable one."""

    token: str
    csrf_token: str
    expires_at: Time
    user: UserOut


class SessionOut(Out):
    id: int
    current: bool
    user_agent: str
    ip: str
    created_at: Time
    last_used_at: Time
    expires_at: Time


class ApiKeyIn(In):
    name: Name
    scopes: list[Scope] = Field(min_length=1)
    expires_at: Time | None = None


class ApiKeyOut(Out):
    id: int
    name: str
    prefix: str
    scopes: list[Scope]
    expires_at: Time | None
    last_used_at: Time | None
    created_at: Time


class ApiKeyCreated(ApiKeyOut):
    """The key itself is shown once."""

    key: str


class AdminUserPatch(In):
    role: Role | None = None
    disabled: bool | None = None


class AdminUserOut(UserOut):
    disabled: bool
    last_login_at: Time | None


class SystemOut(Out):
    """Whether this hub is set up, for the browser before anyone has logged in."""

    version: str
    needs_setup: bool
    registration: Literal["open", "closed"]
