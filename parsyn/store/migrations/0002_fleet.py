"""Limits and history of workers, order of the queue, speeds, presets, ratings, who did what,
and which hub processes live."""

from typing import Any

import peewee


def up(migrator: Any, db: Any) -> None:
    class Project(peewee.Model):
        class Meta:
            database = db
            table_name = "projects"
            legacy_table_names = False

    class User(peewee.Model):
        class Meta:
            database = db
            table_name = "users"
            legacy_table_names = False

    class Worker(peewee.Model):
        class Meta:
            database = db
            table_name = "workers"
            legacy_table_names = False

    class Job(peewee.Model):
        class Meta:
            database = db
            table_name = "jobs"
            legacy_table_names = False

    migrator.migrate(
        *_added(migrator, "workers", "limits", peewee.TextField(), "{}"),
        *_added(migrator, "workers", "protocol", peewee.IntegerField(null=True)),
        *_added(migrator, "workers", "instance", peewee.CharField(null=True)),
        *_added(migrator, "conversations", "answering", peewee.CharField(null=True)),
        *_added(migrator, "tasks", "needs", peewee.TextField(), "{}"),
        *_added(migrator, "jobs", "priority", peewee.IntegerField(), 0),
        *_added(migrator, "jobs", "position", peewee.DoubleField(null=True)),
        *_added(migrator, "datasets", "suggestions", peewee.TextField(), "[]"),
        *_added(migrator, "messages", "parent_id", peewee.IntegerField(null=True)),
        *_added(migrator, "messages", "rating", peewee.IntegerField(null=True)),
    )

    class WorkerEvent(peewee.Model):
        created_at = peewee.DoubleField()
        worker = peewee.ForeignKeyField(Worker, on_delete="CASCADE", backref="+")
        kind = peewee.CharField()
        text = peewee.TextField()
        job_id = peewee.IntegerField(null=True)

        class Meta:
            database = db
            table_name = "worker_events"
            legacy_table_names = False

    class Speed(peewee.Model):
        created_at = peewee.DoubleField()
        job = peewee.ForeignKeyField(Job, unique=True, on_delete="CASCADE", backref="+")
        worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL", backref="+")
        gpu = peewee.CharField(index=True)
        architecture = peewee.CharField()
        parameters = peewee.BigIntegerField()
        method = peewee.CharField()
        sequence_length = peewee.IntegerField()
        tokens_per_second = peewee.DoubleField()
        tokens = peewee.BigIntegerField(null=True)
        seconds = peewee.DoubleField()

        class Meta:
            database = db
            table_name = "speeds"
            legacy_table_names = False

    class Preset(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        name = peewee.CharField()
        description = peewee.TextField(null=True)
        trainer = peewee.CharField()
        config = peewee.TextField()

        class Meta:
            database = db
            table_name = "presets"
            legacy_table_names = False
            indexes = ((("project", "name"), True),)

    class AuditEntry(peewee.Model):
        created_at = peewee.DoubleField()
        user_id = peewee.IntegerField(null=True, index=True)
        project_id = peewee.IntegerField(null=True, index=True)
        actor = peewee.CharField()
        action = peewee.CharField(index=True)
        subject = peewee.CharField(null=True)
        ip = peewee.CharField(null=True)
        details = peewee.TextField()

        class Meta:
            database = db
            table_name = "audit_entries"
            legacy_table_names = False

    class HubProcess(peewee.Model):
        created_at = peewee.DoubleField()
        name = peewee.CharField(unique=True)
        place = peewee.CharField()
        version = peewee.CharField()
        beat = peewee.IntegerField()

        class Meta:
            database = db
            table_name = "hub_processes"
            legacy_table_names = False

    db.create_tables([WorkerEvent, Speed, Preset, AuditEntry, HubProcess])


def _added(migrator: Any, table: str, name: str, field: Any, value: Any = None) -> list[Any]:
    """A new column; one that may not be null is filled with `value`."""
    field.default = value
    return [migrator.add_column(table, name, field)]
