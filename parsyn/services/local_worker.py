"""The appliance's own worker: it belongs to the owner and works for every project."""

from __future__ import annotations

from parsyn.errors import not_found
from parsyn.services import workers
from parsyn.services.accounts import digest
from parsyn.services.context import Context
from parsyn.store.projects import Project
from parsyn.store.users import User
from parsyn.store.workers import Worker
from parsyn.wire.states import Role

NAME = "local"


def ensure_local(context: Context, name: str = NAME) -> tuple[Worker, str]:
    """(worker, new key) of the managed worker; made at the first call, re-keyed afterwards."""
    owner = User.select().where(User.role == Role.OWNER).order_by(User.id).first()
    if owner is None:
        raise not_found("owner")
    key = workers.new_key()
    row = Worker.get_or_none(
        (Worker.kind == "managed") & (Worker.name == name) & Worker.deleted_at.is_null()
    )
    if row is None:
        project = Project.get(Project.owner == owner)
        row = Worker.create(
            user=owner, project=project, name=name, kind="managed", key_hash=digest(key)
        )
    else:
        Worker.update(key_hash=digest(key)).where(Worker.id == row.id).execute()
    workers.publish(context, row.id)
    return row, key
