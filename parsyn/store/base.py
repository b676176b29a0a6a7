"""The base of every table. Times are seconds since the epoch, UTC; structured values are JSON."""

from __future__ import annotations

from typing import Any, ClassVar

import peewee

from parsyn.clock import now

database = peewee.DatabaseProxy()


class Table(peewee.Model):
    """A row has an integer `id` and `created_at`."""

    id = peewee.AutoField()
    created_at = peewee.DoubleField(default=now)

    class Meta:
        database = database
        legacy_table_names = False

    DoesNotExist: ClassVar[type[peewee.DoesNotExist]]

    def as_dict(self) -> dict[str, Any]:
        """Every column by its name in the database, so `project_id` and not `project`."""
        return {
            field.column_name: self.__data__.get(field.name) for field in self._meta.sorted_fields
        }


class Json(peewee.TextField):
    """A JSON value in a text column, the same on every database."""

    def db_value(self, value: Any) -> str | None:
        return None if value is None else peewee.json.dumps(value, separators=(",", ":"))

    def python_value(self, value: str | None) -> Any:
        return None if value is None else peewee.json.loads(value)
