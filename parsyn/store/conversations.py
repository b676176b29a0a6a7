"""Conversations with models, and their messages."""

from __future__ import annotations

import peewee

from parsyn.clock import now
from parsyn.store.base import Json, Table
from parsyn.store.models import Model
from parsyn.store.projects import Owned


class Conversation(Owned):
    """`answering` names the hub process in which an answer is being written; null: none is."""

    model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL")
    title = peewee.CharField()
    system_prompt = peewee.TextField(null=True)
    params = Json(default=dict)
    updated_at = peewee.DoubleField(default=now)
    answering = peewee.CharField(null=True)

    class Meta:
        table_name = "conversations"


class Message(Table):
    """An answer that was cut short is kept as far as it came, `finish_reason` says why.

    `parent_id` is the message before it where a conversation branches; null: the one stored before.
    `rating` is 1 or -1.
    """

    conversation = peewee.ForeignKeyField(Conversation, backref="messages", on_delete="CASCADE")
    role = peewee.CharField()
    content = peewee.TextField()
    model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL")
    worker_name = peewee.CharField(null=True)
    finish_reason = peewee.CharField(null=True)
    usage = Json(null=True)
    timings = Json(null=True)
    parent_id = peewee.IntegerField(null=True)
    rating = peewee.IntegerField(null=True)

    class Meta:
        table_name = "messages"


TABLES = (Conversation, Message)
