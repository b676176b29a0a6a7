"""The base of every table. Times are seconds since the epoch, UTC; structured values are JSON."""

from __future__ import annotations

from typing import Any, ClassVar, Self

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

    @classmethod
    def by_id(cls, id: int | None) -> Self | None:
        """The row or None, by a statement that is built once.

        Building it takes the ORM a hundred times longer than running it takes the database, which
        counts where one event reads a dozen rows.
        """
        if id is None:
            return None
        fields = cls._meta.sorted_fields
        key = (cls, database.obj.param)
        if key not in _statements:
            _statements[key] = cls.select(*fields).where(cls.id == id).sql()[0]
        found = database.execute_sql(_statements[key], (id,)).fetchone()
        if found is None:
            return None
        row = cls(__no_default__=True)
        row.__data__ = {
            field.name: field.python_value(value)
            for field, value in zip(fields, found, strict=True)
        }
        row._dirty.clear()
        return row

    def as_dict(self) -> dict[str, Any]:
        """Every column by its name in the database, so `project_id` and not `project`."""
        return {
            field.column_name: self.__data__.get(field.name) for field in self._meta.sorted_fields
        }


_statements: dict[tuple[type[Table], str], str] = {}


class Json(peewee.TextField):
    """A JSON value in a text column, the same on every database."""

    def db_value(self, value: Any) -> str | None:
        return None if value is None else peewee.json.dumps(value, separators=(",", ":"))

    def python_value(self, value: str | None) -> Any:
        return None if value is None else peewee.json.loads(value)
