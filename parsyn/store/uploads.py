"""Uploads in parts. A part is an object in the storage until `complete` joins them."""

from __future__ import annotations

import peewee

from parsyn.store.base import Table
from parsyn.store.projects import Owned


class Upload(Owned):
    """`status`: open, complete, aborted. `key` is the joined object's."""

    filename = peewee.CharField()
    size = peewee.BigIntegerField()
    purpose = peewee.CharField()
    part_size = peewee.BigIntegerField()
    sha256 = peewee.CharField(null=True)
    key = peewee.CharField()
    status = peewee.CharField(default="open")
    expires_at = peewee.DoubleField(index=True)

    class Meta:
        table_name = "uploads"


class UploadPart(Table):
    upload = peewee.ForeignKeyField(Upload, backref="parts", on_delete="CASCADE")
    n = peewee.IntegerField()
    size = peewee.BigIntegerField()
    sha256 = peewee.CharField()
    key = peewee.CharField()

    class Meta:
        table_name = "upload_parts"
        indexes = ((("upload", "n"), True),)


TABLES = (Upload, UploadPart)
