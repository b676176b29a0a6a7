"""Workers, and the master keys with which they enrol."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json, Table
from parsyn.store.projects import Owned
from parsyn.wire.states import WorkerStatus, WorkerType


class MasterKey(Owned):
    name = peewee.CharField()
    description = peewee.TextField(null=True)
    prefix = peewee.CharField()
    key_hash = peewee.CharField(unique=True)
    auto_name_prefix = peewee.CharField(null=True)
    default_worker_type = peewee.CharField(default=WorkerType.BOTH)
    max_enrollments = peewee.IntegerField(null=True)
    enrollments = peewee.IntegerField(default=0)
    expires_at = peewee.DoubleField(null=True)
    revoked_at = peewee.DoubleField(null=True)

    class Meta:
        table_name = "master_keys"


class Worker(Owned):
    """`status` is what the hub believes; a running task makes an idle one training or busy.

    `connection` names the live socket as `<hub process>:<n>`; null when there is none.
    `limits` is the owner's `WorkerLimits`. `instance` is what its agent said in its last hello.
    """

    name = peewee.CharField()
    kind = peewee.CharField(default="user")
    worker_type = peewee.CharField(default=WorkerType.BOTH)
    status = peewee.CharField(default=WorkerStatus.OFFLINE)
    key_hash = peewee.CharField(unique=True)
    master_key = peewee.ForeignKeyField(MasterKey, null=True, on_delete="SET NULL")
    device = peewee.CharField(null=True)
    hardware = Json(null=True)
    benchmark = Json(null=True)
    metrics = Json(null=True)
    max_batch_size = peewee.IntegerField(default=32)
    trust_remote_code = peewee.BooleanField(default=False)
    version = peewee.CharField(null=True)
    connection = peewee.CharField(null=True)
    last_seen_at = peewee.DoubleField(null=True)
    paused = peewee.BooleanField(default=False)
    draining = peewee.BooleanField(default=False)
    deleted_at = peewee.DoubleField(null=True)
    limits = Json(default=dict)
    protocol = peewee.IntegerField(null=True)
    instance = peewee.CharField(null=True)

    class Meta:
        table_name = "workers"
        indexes = ((("project", "name"), False),)


class WorkerEvent(Table):
    """One line of a worker's history: it came, went, was refused, failed at a job."""

    worker = peewee.ForeignKeyField(Worker, backref="history", on_delete="CASCADE")
    kind = peewee.CharField()
    text = peewee.TextField()
    job_id = peewee.IntegerField(null=True)

    class Meta:
        table_name = "worker_events"


TABLES = (MasterKey, Worker, WorkerEvent)
