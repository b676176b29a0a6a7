"""Datasets: one stored file each, and what validation and statistics found in it."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json
from parsyn.store.projects import Owned
from parsyn.wire.states import Compression, DatasetStatus, StatsStatus


class Dataset(Owned):
    """`problems` is the report's list, `summary` its first sentence; `key` is the file's.

    `revision` counts the validations asked for: what an older one finds is ignored. The job that
    validates or measures holds `lease_until` ahead of the clock; `tries` counts such jobs.
    """

    name = peewee.CharField()
    filename = peewee.CharField()
    key = peewee.CharField()
    size = peewee.BigIntegerField()
    sha256 = peewee.CharField()
    status = peewee.CharField(default=DatasetStatus.VALIDATING)
    requested_format = peewee.CharField(default="auto")
    file_format = peewee.CharField(null=True)
    compression = peewee.CharField(default=Compression.NONE)
    schema_kind = peewee.CharField(null=True)
    needs_mapping = peewee.BooleanField(default=False)
    mapping = Json(null=True)
    candidates = Json(default=list)
    suggestions = Json(default=list)
    strict = peewee.BooleanField(default=False)
    columns = Json(default=list)
    row_count = peewee.IntegerField(null=True)
    bad_row_count = peewee.IntegerField(null=True)
    problems = Json(default=list)
    problems_count = peewee.IntegerField(default=0)
    summary = peewee.TextField(null=True)
    parent = peewee.ForeignKeyField("self", null=True, on_delete="SET NULL")
    operation = peewee.CharField(null=True)
    stats_status = peewee.CharField(default=StatsStatus.NONE)
    stats = Json(null=True)
    revision = peewee.IntegerField(default=1)
    lease_until = peewee.DoubleField(default=0.0)
    tries = peewee.IntegerField(default=0)

    class Meta:
        table_name = "datasets"


TABLES = (Dataset,)
