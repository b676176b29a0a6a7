"""Many small updates in one round: the ORM takes a hundred times longer to build one than the
database to run it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import peewee

from parsyn.store.base import database


def update_many(fields: Sequence[peewee.Field], rows: Iterable[Sequence[Any]]) -> None:
    """Set `fields` of one table, row by row: each of `rows` is an id and then the values."""
    mark = database.obj.param
    changes = ", ".join(f'"{field.column_name}" = {mark}' for field in fields)
    table = fields[0].model._meta.table_name
    values = [
        (*(field.db_value(value) for field, value in zip(fields, row[1:], strict=True)), row[0])
        for row in rows
    ]
    if values:
        statement = f'UPDATE "{table}" SET {changes} WHERE "id" = {mark}'  # noqa: S608
        database.obj.cursor().executemany(statement, values)
