"""Projects and who may see them; the one place that builds the visibility condition."""

from __future__ import annotations

from typing import Any

import peewee

from parsyn.store.base import Table
from parsyn.store.users import User
from parsyn.wire.states import ProjectRole


class Project(Table):
    """`owner` is set on a user's personal project and null on shared ones."""

    name = peewee.CharField()
    owner = peewee.ForeignKeyField(User, null=True, unique=True, on_delete="CASCADE")

    class Meta:
        table_name = "projects"


class ProjectMember(Table):
    """A user's role on a project; the owner of a personal one is its admin by a row here too."""

    project = peewee.ForeignKeyField(Project, backref="members", on_delete="CASCADE")
    user = peewee.ForeignKeyField(User, backref="memberships", on_delete="CASCADE")
    role = peewee.CharField(default=ProjectRole.VIEWER)

    class Meta:
        table_name = "project_members"
        indexes = ((("project", "user"), True),)


class Owned(Table):
    """Base of every tenant's row: who made it and in which project it is."""

    user = peewee.ForeignKeyField(User, on_delete="CASCADE")
    project = peewee.ForeignKeyField(Project, on_delete="CASCADE")


RANK = {ProjectRole.VIEWER: 0, ProjectRole.EDITOR: 1, ProjectRole.ADMIN: 2}


def visible(
    table: type[Owned], user_id: int, at_least: ProjectRole = ProjectRole.VIEWER
) -> peewee.Expression:
    """The condition under which a user may see (or with a higher role: change) rows of `table`.

    Every query of a tenant's rows goes through it.
    """
    roles = [role for role, rank in RANK.items() if rank >= RANK[at_least]]
    mine = ProjectMember.select(ProjectMember.project).where(
        (ProjectMember.user == user_id) & (ProjectMember.role.in_(roles))
    )
    return table.project.in_(mine)


def role_on(project_id: int, user_id: int) -> ProjectRole | None:
    """The user's role on a project, None where it is not theirs to see."""
    row: Any = ProjectMember.get_or_none(
        (ProjectMember.project == project_id) & (ProjectMember.user == user_id)
    )
    return ProjectRole(row.role) if row else None


TABLES = (Project, ProjectMember)
