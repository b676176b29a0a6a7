"""Who did what, as admins read it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from parsyn.wire.api.base import Out, Time


class AuditAction(StrEnum):
    """What is written down. The subject of each, in brackets."""

    SET_UP = "account.set_up"  # user
    REGISTERED = "account.registered"  # user
    LOGGED_IN = "login.succeeded"  # user
    LOGIN_FAILED = "login.failed"  # none: the address is in the details
    LOGGED_OUT = "session.ended"  # session
    PASSWORD_CHANGED = "account.password_changed"  # user  # noqa: S105
    USER_CHANGED = "user.changed"  # user
    API_KEY_MADE = "api_key.made"  # api_key
    API_KEY_DELETED = "api_key.deleted"  # api_key
    MASTER_KEY_MADE = "master_key.made"  # master_key
    MASTER_KEY_REVOKED = "master_key.revoked"  # master_key
    WORKER_MADE = "worker.made"  # worker
    WORKER_ENROLLED = "worker.enrolled"  # worker
    WORKER_CHANGED = "worker.changed"  # worker: name, type, limits
    WORKER_PAUSED = "worker.paused"  # worker
    WORKER_DRAINED = "worker.drained"  # worker
    WORKER_RESUMED = "worker.resumed"  # worker
    WORKER_KEY_REPLACED = "worker.key_replaced"  # worker
    WORKER_DELETED = "worker.deleted"  # worker
    JOB_STARTED = "job.started"  # job
    JOB_RESUMED = "job.resumed"  # job
    JOB_CANCELLED = "job.cancelled"  # job
    JOB_DELETED = "job.deleted"  # job
    DATASET_DELETED = "dataset.deleted"  # dataset
    MODEL_DELETED = "model.deleted"  # model


class AuditOut(Out):
    """`actor` is who, in words that outlive the account; `subject` what, as `worker:12`."""

    id: int
    at: Time
    action: AuditAction
    actor: str
    user_id: int | None
    project_id: int | None
    subject: str | None
    ip: str | None
    details: dict[str, Any]
