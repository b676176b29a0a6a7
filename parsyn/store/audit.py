"""Who did what: written with the change itself, never changed afterwards."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json, Table


class AuditEntry(Table):
    """`actor` is who, in words that outlive the account; `subject` what, as `worker:12`.

    Without foreign keys, so that an entry stays when what it names is deleted.
    """

    user_id = peewee.IntegerField(null=True, index=True)
    project_id = peewee.IntegerField(null=True, index=True)
    actor = peewee.CharField()
    action = peewee.CharField(index=True)
    subject = peewee.CharField(null=True)
    ip = peewee.CharField(null=True)
    details = Json(default=dict)

    class Meta:
        table_name = "audit_entries"


TABLES = (AuditEntry,)
