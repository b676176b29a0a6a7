"""Jobs (what a user asked for), tasks (what an agent is offered), and what they leave behind."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json, Table
from parsyn.store.datasets import Dataset
from parsyn.store.models import Model
from parsyn.store.projects import Owned
from parsyn.store.workers import Worker
from parsyn.wire.states import JobStatus, TaskStatus


class Job(Owned):
    """`request` is what was asked for, `params` the validated parameters with every default.

    `request` holds, by kind: training {trainer, config, export, distributed, worker_selection},
    evaluation {evaluator}, export {format}, import {}. `result` is the manifest's facts.
    The queue is worked through by `priority` (a level; larger first), then fairly between users,
    and each user's jobs by `position` (smaller first; null: when its task was made).
    """

    kind = peewee.CharField()
    name = peewee.CharField()
    status = peewee.CharField(default=JobStatus.PENDING)
    model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL", backref="jobs")
    dataset = peewee.ForeignKeyField(Dataset, null=True, on_delete="SET NULL")
    validation_dataset = peewee.ForeignKeyField(
        Dataset, null=True, on_delete="SET NULL", backref="validates"
    )
    request = Json(default=dict)
    params = Json(default=dict)
    progress = Json(default=dict)
    metrics_latest = Json(default=dict)
    placement = Json(default=dict)
    waiting = peewee.TextField(null=True)
    failure = Json(null=True)
    result = Json(null=True)
    result_model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL", backref="made_by")
    started_at = peewee.DoubleField(null=True)
    finished_at = peewee.DoubleField(null=True)
    priority = peewee.IntegerField(default=0)
    position = peewee.DoubleField(null=True)

    class Meta:
        table_name = "jobs"
        indexes = ((("kind", "status"), False),)


class Task(Table):
    """`attempt` is the fencing token, `spec` a TaskSpec; `manifest_hash` makes results idempotent.

    `needs` is what placing it takes: see services/needs.py.

    `first_attempt` is the one with which a person last started it: retries count from there.

    `applied_seq` is the highest seq of this attempt's state, checkpoint and result messages that
    has been applied; they arrive in order.
    """

    job = peewee.ForeignKeyField(Job, backref="tasks", on_delete="CASCADE")
    kind = peewee.CharField()
    status = peewee.CharField(default=TaskStatus.QUEUED, index=True)
    attempt = peewee.IntegerField(default=1)
    first_attempt = peewee.IntegerField(default=1)
    worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL", backref="tasks")
    spec = Json()
    needs = Json(default=dict)
    resume = Json(null=True)
    applied_seq = peewee.IntegerField(default=0)
    offered_at = peewee.DoubleField(null=True)
    started_at = peewee.DoubleField(null=True)
    unreachable_since = peewee.DoubleField(null=True)
    refused_by = Json(default=dict)
    cancel_requested_at = peewee.DoubleField(null=True)
    manifest_hash = peewee.CharField(null=True)
    finished_at = peewee.DoubleField(null=True)

    class Meta:
        table_name = "tasks"


class JobEvent(Table):
    """One line of a job's timeline: a transition and its cause."""

    job = peewee.ForeignKeyField(Job, backref="events", on_delete="CASCADE")
    attempt = peewee.IntegerField(default=1)
    status = peewee.CharField()
    cause = peewee.TextField()
    worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL")

    class Meta:
        table_name = "job_events"


class Checkpoint(Table):
    """A stored and verified checkpoint; `files` is a list of FileRef."""

    job = peewee.ForeignKeyField(Job, backref="checkpoints", on_delete="CASCADE")
    task = peewee.ForeignKeyField(Task, on_delete="CASCADE")
    attempt = peewee.IntegerField()
    step = peewee.IntegerField()
    epoch = peewee.DoubleField(null=True)
    metrics = Json(default=dict)
    best = peewee.BooleanField(default=False)
    files = Json()
    size = peewee.BigIntegerField()

    class Meta:
        table_name = "checkpoints"
        indexes = ((("task", "attempt", "step"), True),)


class Artifact(Table):
    """A file that a job left: results of exports and trainings."""

    job = peewee.ForeignKeyField(Job, backref="artifacts", on_delete="CASCADE")
    kind = peewee.CharField()
    round = peewee.IntegerField(null=True)
    worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL")
    step = peewee.IntegerField(null=True)
    path = peewee.CharField()
    key = peewee.CharField()
    size = peewee.BigIntegerField()
    sha256 = peewee.CharField()

    class Meta:
        table_name = "artifacts"
        indexes = ((("job", "kind", "path"), True),)


class StoredObject(Table):
    """What an attempt has stored, by the hub's own measure; manifests must match it."""

    task = peewee.ForeignKeyField(Task, backref="stored", on_delete="CASCADE")
    attempt = peewee.IntegerField()
    path = peewee.CharField()
    key = peewee.CharField(unique=True)
    size = peewee.BigIntegerField()
    sha256 = peewee.CharField()

    class Meta:
        table_name = "stored_objects"


class Speed(Table):
    """What a finished task was measured at: the best forecast of the next one like it.

    `tokens_per_second` counts tokens that carry text. `parameters` are those of the whole model,
    `sequence_length` is the longest row that was trained.
    """

    job = peewee.ForeignKeyField(Job, unique=True, on_delete="CASCADE")
    worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL")
    gpu = peewee.CharField(index=True)
    architecture = peewee.CharField()
    parameters = peewee.BigIntegerField()
    method = peewee.CharField()
    sequence_length = peewee.IntegerField()
    tokens_per_second = peewee.DoubleField()
    tokens = peewee.BigIntegerField(null=True)
    seconds = peewee.DoubleField()

    class Meta:
        table_name = "speeds"


class Preset(Owned):
    """A trainer's parameters under a name, to start from."""

    name = peewee.CharField()
    description = peewee.TextField(null=True)
    trainer = peewee.CharField()
    config = Json(default=dict)

    class Meta:
        table_name = "presets"
        indexes = ((("project", "name"), True),)


TABLES = (Job, Task, JobEvent, Checkpoint, Artifact, StoredObject, Speed, Preset)
