"""Tickets: short-lived, signed rights to put or get one object. Their bearer needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError
from parsyn.services import tasks
from parsyn.services.context import Context
from parsyn.store.jobs import StoredObject, Task
from parsyn.wire.states import TaskStatus
from parsyn.wire.worker import TaskKey, Ticket, WantTicket

SECONDS = 900
PATH_LIMIT = 400
STALE = "Another attempt owns this task now; what this one stores is refused."


class Grant(BaseModel):
    """What a ticket allows. `attempt`, `path`, `size` and `sha256` are set for a put."""

    model_config = ConfigDict(frozen=True)

    op: Literal["get", "put"]
    key: str
    until: float
    task_id: int = 0
    attempt: int = 0
    path: str = ""
    size: int = 0
    sha256: str = ""


class Refusal(Exception):
    """Why no ticket is given, for the agent's log."""


# --- giving ----------------------------------------------------------------------------------


def for_task(context: Context, worker_id: int, want: WantTicket) -> Ticket:
    """The ticket that an attempt asks for. Raises Refusal."""
    if want.task_id is None or want.attempt is None:
        raise Refusal("It names neither a task nor a chat.")
    task = tasks.find(TaskKey(task_id=want.task_id, attempt=want.attempt), worker_id)
    if task is None or task.status not in (TaskStatus.RUNNING, TaskStatus.OFFERED):
        raise Refusal("The task is not this agent's any more.")
    if want.op == "put":
        return _for_put(context, task, want)
    if want.key not in keys_of(task):
        raise Refusal("This task does not need that object.")
    return for_get(context, want.request_id, want.key)


def keys_of(task: Task) -> set[str]:
    """Every object that a task's spec and its resume checkpoint name."""
    return set(_keys_in(task.spec)) | set(_keys_in(task.resume))


def _keys_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("key"), str):
            yield value["key"]
        for inner in value.values():
            yield from _keys_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys_in(inner)


def for_get(context: Context, request_id: str, key: str) -> Ticket:
    """A ticket to get an object that the asker was found to need."""
    grant = Grant(op="get", key=key, until=now() + SECONDS)
    return _ticket(context, request_id, grant)


def _for_put(context: Context, task: Task, want: WantTicket) -> Ticket:
    if want.size is None or want.size < 0 or want.sha256 is None or len(want.sha256) != 64:
        raise Refusal("A put needs the object's size and SHA-256.")
    limit = context.settings.integer("storage.max_upload_bytes")
    if want.size > limit:
        raise Refusal(f"{want.path} has {want.size:,} bytes; the limit is {limit:,}.")
    path = _checked_path(want.path)
    grant = Grant(
        op="put",
        key=f"tasks/{task.id}/{task.attempt}/{path}",
        until=now() + SECONDS,
        task_id=task.id,
        attempt=task.attempt,
        path=path,
        size=want.size,
        sha256=want.sha256.lower(),
    )
    return _ticket(context, want.request_id, grant)


def _checked_path(path: str | None) -> str:
    parts = (path or "").split("/")
    bad = any(part in ("", ".", "..") or "\\" in part or not part.isprintable() for part in parts)
    if not path or bad or len(path) > PATH_LIMIT:
        raise Refusal("The path must be relative, without `..`, and of at most 400 characters.")
    return path


def _ticket(context: Context, request_id: str, grant: Grant) -> Ticket:
    method: Literal["GET", "PUT"] = "PUT" if grant.op == "put" else "GET"
    # The hub must see what is put, to measure and to fence it; what is got needs no look.
    direct = context.storage.presign(grant.key, method, SECONDS) if grant.op == "get" else None
    return Ticket(
        request_id=request_id,
        url=direct or f"/storage/{sign(context, grant)}",
        method=method,
        key=grant.key,
        expires_at=grant.until,
    )


# --- signing ---------------------------------------------------------------------------------


def sign(context: Context, grant: Grant) -> str:
    """`<grant>.<HMAC-SHA256>`, both base64url."""
    body = _encode(json.dumps(grant.model_dump(), separators=(",", ":")).encode())
    return f"{body}.{_encode(_mac(context, body))}"


def read(context: Context, ticket: str, op: str) -> Grant:
    """What a ticket allows. Raises 401 for one that is forged, too old or for another method."""
    body, _, mac = ticket.partition(".")
    try:
        signed = hmac.compare_digest(_decode(mac), _mac(context, body))
        grant = Grant.model_validate_json(_decode(body)) if signed else None
    except (ValueError, ValidationError):
        grant = None
    if grant is None or grant.op != op:
        raise ParsynError(ErrorCode.UNAUTHENTICATED, "This ticket is not valid here.")
    if grant.until < now():
        raise ParsynError(ErrorCode.UNAUTHENTICATED, "This ticket has expired; ask for another.")
    return grant


def _mac(context: Context, body: str) -> bytes:
    return hmac.new(context.secret, f"ticket:{body}".encode(), hashlib.sha256).digest()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# --- storing ---------------------------------------------------------------------------------


def require_current(grant: Grant) -> StoredObject | None:
    """What this put has stored before, if anything. Raises 409 when its attempt is past.

    Raises 409 too where the key holds other bytes: objects are not replaced.
    """
    if not Task.select().where(tasks.is_current(grant.task_id, grant.attempt)).exists():
        raise ParsynError(ErrorCode.STALE_ATTEMPT, STALE)
    row = StoredObject.get_or_none(StoredObject.key == grant.key)
    if row is not None and row.sha256 != grant.sha256:
        raise ParsynError(ErrorCode.CONFLICT, f"{grant.path} is stored already, with other bytes.")
    return row


def record(grant: Grant) -> StoredObject:
    """Note what was stored, unless the attempt has passed meanwhile (409)."""
    row = require_current(grant)
    if row is not None:
        return row
    return StoredObject.create(
        task=grant.task_id,
        attempt=grant.attempt,
        path=grant.path,
        key=grant.key,
        size=grant.size,
        sha256=grant.sha256,
    )
