"""Effects that must leave after a commit, and requests that must take effect once."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json, Table
from parsyn.store.users import User


class Outbox(Table):
    """`kind` is a queue function's dotted name or `hook:<event hook>`; delivered at least once."""

    kind = peewee.CharField()
    payload = Json()
    attempts = peewee.IntegerField(default=0)
    next_at = peewee.DoubleField(index=True)
    done_at = peewee.DoubleField(null=True, index=True)

    class Meta:
        table_name = "outbox"


class IdempotencyKey(Table):
    """The answer to a POST that carried `Idempotency-Key`, kept for 24 h."""

    user = peewee.ForeignKeyField(User, on_delete="CASCADE")
    key = peewee.CharField()
    request_hash = peewee.CharField()
    status = peewee.IntegerField(null=True)
    body = peewee.TextField(null=True)

    class Meta:
        table_name = "idempotency_keys"
        indexes = ((("user", "key"), True),)


TABLES = (Outbox, IdempotencyKey)
