"""Users, sessions and API keys. Random secrets are stored as SHA-256, passwords as argon2id."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json, Table
from parsyn.wire.states import Role


class User(Table):
    """`email` is lower-case."""

    email = peewee.CharField(unique=True)
    name = peewee.CharField()
    password_hash = peewee.CharField()
    role = peewee.CharField(default=Role.USER)
    language = peewee.CharField(null=True)
    theme = peewee.CharField(default="system")
    disabled = peewee.BooleanField(default=False)
    last_login_at = peewee.DoubleField(null=True)

    class Meta:
        table_name = "users"


class Session(Table):
    user = peewee.ForeignKeyField(User, backref="sessions", on_delete="CASCADE")
    token_hash = peewee.CharField(unique=True)
    csrf_token = peewee.CharField()
    user_agent = peewee.CharField(default="")
    ip = peewee.CharField(default="")
    last_used_at = peewee.DoubleField()
    expires_at = peewee.DoubleField()

    class Meta:
        table_name = "sessions"


class ApiKey(Table):
    """`prefix` is what a person recognises the key by."""

    user = peewee.ForeignKeyField(User, backref="api_keys", on_delete="CASCADE")
    name = peewee.CharField()
    prefix = peewee.CharField()
    key_hash = peewee.CharField(unique=True)
    scopes = Json()
    expires_at = peewee.DoubleField(null=True)
    last_used_at = peewee.DoubleField(null=True)

    class Meta:
        table_name = "api_keys"


class SetupToken(Table):
    """The one-time link of the first run."""

    token_hash = peewee.CharField(unique=True)
    expires_at = peewee.DoubleField()
    used_at = peewee.DoubleField(null=True)

    class Meta:
        table_name = "setup_tokens"


class LoginFailure(Table):
    """Counted per account and window, to slow down guessing."""

    email = peewee.CharField(index=True)

    class Meta:
        table_name = "login_failures"


TABLES = (User, Session, ApiKey, SetupToken, LoginFailure)
