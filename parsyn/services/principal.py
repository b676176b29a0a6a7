"""Who asks: the outcome of checking a credential, and what it may do."""

from __future__ import annotations

from dataclasses import dataclass

from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.store.projects import RANK, Project, role_on
from parsyn.wire.states import ProjectRole, Role, Scope

ALL_SCOPES = frozenset(Scope)


@dataclass(frozen=True)
class Principal:
    """`via` is how the credential came; only `cookie` needs the CSRF token."""

    user_id: int
    role: Role
    scopes: frozenset[Scope]
    via: str
    session_id: int | None = None
    api_key_id: int | None = None
    csrf_token: str | None = None

    @property
    def is_admin(self) -> bool:
        return self.role in (Role.ADMIN, Role.OWNER)


def project_for(who: Principal, project_id: int | None) -> int:
    """The project in which a new row goes: the one named, else the personal one.

    Raises 404 for a project that is not theirs to see, 403 where they are only viewers.
    """
    if project_id is None:
        personal = Project.get_or_none(Project.owner == who.user_id)
        if personal is None:
            raise not_found("project")
        return int(personal.id)
    require_role(who, project_id, ProjectRole.EDITOR, loc="project_id")
    return project_id


def require_role(
    who: Principal, project_id: int, at_least: ProjectRole, loc: str | None = None
) -> None:
    """Raise 404 where the project is not visible (422 at `loc` in a body), 403 below the role."""
    role = role_on(project_id, who.user_id)
    if role is None:
        raise invalid([loc], "There is no such project.") if loc else not_found("project")
    if RANK[role] < RANK[at_least]:
        raise ParsynError(
            ErrorCode.FORBIDDEN,
            f"Your role on this project is {role}; this needs {at_least}. Ask its admin.",
        )
