"""Master keys, and how a machine becomes a worker with them."""

from __future__ import annotations

import re
import secrets
from typing import Any

from parsyn.clock import now
from parsyn.errors import invalid, not_found
from parsyn.services import audit, workers
from parsyn.services.accounts import digest
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for, require_role
from parsyn.store.projects import RANK, role_on, visible
from parsyn.store.workers import MasterKey, Worker
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.workers import MasterKeyIn
from parsyn.wire.states import ProjectRole, WorkerType
from parsyn.wire.worker import CloseCode, Hello

DEFAULT_PREFIX = "worker"
OWNER_DISABLED = "The account that owns this worker is disabled."
SHOWN_CHARACTERS = 14
AGAIN_SECONDS = 600.0
"""For so long an agent whose enrolment was answered into the void may ask again."""


class Refused(Exception):
    """A socket that the hub will not keep: the close code, and a sentence for the agent's log."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


# --- master keys -----------------------------------------------------------------------------


def create_key(who: Principal, body: MasterKeyIn) -> dict[str, Any]:
    """A new enrolment key; it is shown once."""
    project_id = project_for(who, body.project_id)
    if body.expires_at is not None and body.expires_at.timestamp() <= now():
        raise invalid(["expires_at"], "This lies in the past; a key must be good for a while.")
    key = f"enroll_{secrets.token_urlsafe(32)}"
    row = MasterKey.create(
        user=who.user_id,
        project=project_id,
        name=body.name,
        description=body.description,
        prefix=key[:SHOWN_CHARACTERS],
        key_hash=digest(key),
        auto_name_prefix=body.auto_name_prefix,
        default_worker_type=body.default_worker_type,
        max_enrollments=body.max_enrollments,
        expires_at=body.expires_at.timestamp() if body.expires_at else None,
    )
    audit.record(
        who, AuditAction.MASTER_KEY_MADE, f"master_key:{row.id}", project_id, name=row.name
    )
    return {**key_as_out(MasterKey.get_by_id(row.id)), "key": key}


def list_keys(who: Principal, limit: int, offset: int) -> dict[str, Any]:
    """The enrolment keys of the projects that one may see, newest first."""
    query = MasterKey.select().where(visible(MasterKey, who.user_id))
    rows = query.order_by(MasterKey.id.desc()).limit(limit).offset(offset)
    return {"items": [key_as_out(row) for row in rows], "total": query.count()}


def revoke_key(who: Principal, key_id: int) -> None:
    """Stop new enrolments; who is enrolled stays."""
    row = MasterKey.get_or_none((MasterKey.id == key_id) & visible(MasterKey, who.user_id))
    if row is None:
        raise not_found("enrolment key")
    require_role(who, row.project_id, ProjectRole.EDITOR)
    MasterKey.update(revoked_at=now()).where(
        (MasterKey.id == key_id) & MasterKey.revoked_at.is_null()
    ).execute()
    audit.record(
        who, AuditAction.MASTER_KEY_REVOKED, f"master_key:{row.id}", row.project_id, name=row.name
    )


def key_as_out(row: MasterKey) -> dict[str, Any]:
    return {**row.__data__, "revoked": row.revoked_at is not None}


# --- the handshake ---------------------------------------------------------------------------


def check(credential: str) -> None:
    """Look at a socket's credential before anything is read from it. Raises Refused."""
    if credential.startswith("wkr_"):
        find_worker(credential)
    elif credential.startswith("enroll_"):
        key = _find_key(credential)
        if not _enrolled_just_now(key):
            _refuse_used_up(key)
    else:
        raise Refused(
            CloseCode.BAD_CREDENTIAL,
            "Send `Authorization: Bearer` with a wkr_ or enroll_ key; others do not work here.",
        )


def find_worker(key: str) -> Worker:
    """The worker whose own key this is. Raises Refused."""
    row = Worker.get_or_none(Worker.key_hash == digest(key))
    if row is None:
        raise Refused(CloseCode.BAD_CREDENTIAL, "This hub does not know the agent's key.")
    if row.deleted_at is not None:
        raise Refused(CloseCode.REVOKED, f"The worker {row.name} was removed from this hub.")
    if row.user.disabled:
        raise Refused(CloseCode.REVOKED, OWNER_DISABLED)
    return row


def _find_key(key: str) -> MasterKey:
    row = MasterKey.get_or_none(MasterKey.key_hash == digest(key))
    if row is None:
        raise Refused(CloseCode.BAD_CREDENTIAL, "This hub does not know the enrolment key.")
    if row.revoked_at is not None or row.user.disabled:
        raise Refused(CloseCode.KEY_EXHAUSTED, f"The enrolment key {row.name} was revoked.")
    if row.expires_at is not None and row.expires_at <= now():
        raise Refused(CloseCode.KEY_EXHAUSTED, f"The enrolment key {row.name} has expired.")
    role = role_on(row.project_id, row.user_id)
    if role is None or RANK[role] < RANK[ProjectRole.EDITOR]:
        raise Refused(
            CloseCode.KEY_EXHAUSTED,
            f"Whoever made the enrolment key {row.name} may no longer add machines to its project.",
        )
    return row


def _refuse_used_up(row: MasterKey) -> None:
    if row.max_enrollments is not None and row.enrollments >= row.max_enrollments:
        raise Refused(
            CloseCode.KEY_EXHAUSTED,
            f"The enrolment key {row.name} has been used {row.enrollments} times, its limit.",
        )


def _enrolled_just_now(row: MasterKey) -> bool:
    """One of its last agents may come again, because the answer to its enrolment was lost."""
    young = (Worker.master_key == row) & (Worker.created_at > now() - AGAIN_SECONDS)
    return bool(Worker.select().where(young & Worker.deleted_at.is_null()).exists())


def enroll(context: Context, key: str, hello: Hello) -> tuple[Worker, str]:
    """A new worker and its own key. Raises Refused; the count holds under parallel enrolments.

    An agent that comes again with the enrolment key has not got the answer to its enrolment: it
    is the same worker, with another key of its own, and does not count twice.
    """
    context.database.one_at_a_time("enroll")
    row = _find_key(key)
    own = workers.new_key()
    again = _again(row, hello)
    if again is not None:
        Worker.update(key_hash=digest(own)).where(Worker.id == again.id).execute()
        return again, own
    _refuse_used_up(row)
    within = MasterKey.max_enrollments.is_null() | (
        MasterKey.enrollments < MasterKey.max_enrollments
    )
    counted = (
        MasterKey.update(enrollments=MasterKey.enrollments + 1)
        .where((MasterKey.id == row.id) & MasterKey.revoked_at.is_null() & within)
        .execute()
    )
    if not counted:
        raise Refused(CloseCode.KEY_EXHAUSTED, f"The enrolment key {row.name} is used up.")
    given = hello.worker_type != WorkerType.BOTH
    worker = Worker.create(
        user=row.user_id,
        project=row.project_id,
        name=_name(row, hello),
        worker_type=hello.worker_type if given else row.default_worker_type,
        key_hash=digest(own),
        master_key=row,
    )
    audit.record_agent(
        AuditAction.WORKER_ENROLLED, f"worker:{worker.id}", row.project_id, name=worker.name,
        master_key=row.name,
    )  # fmt: skip
    return worker, own


def _again(row: MasterKey, hello: Hello) -> Worker | None:
    """The worker that this start of an agent has enrolled as already."""
    if not hello.instance:
        return None
    return Worker.get_or_none(
        (Worker.master_key == row)
        & (Worker.instance == hello.instance[:100])
        & (Worker.created_at > now() - AGAIN_SECONDS)
        & Worker.deleted_at.is_null()
    )


def _name(row: MasterKey, hello: Hello) -> str:
    """The agent's own name where no living worker has it, else the next of the prefix: a number
    that no worker of the project has ever had."""
    own = (hello.name or "").strip()[:100]
    rows = list(
        Worker.select(Worker.name, Worker.deleted_at).where(Worker.project == row.project_id)
    )
    if own and own not in {w.name for w in rows if w.deleted_at is None}:
        return own
    prefix = own or row.auto_name_prefix or DEFAULT_PREFIX
    pattern = re.compile(re.escape(prefix) + r"-(\d{1,9})")
    numbers = [int(match[1]) for w in rows if (match := pattern.fullmatch(w.name))]
    return f"{prefix}-{max(numbers, default=1 if own else 0) + 1}"
