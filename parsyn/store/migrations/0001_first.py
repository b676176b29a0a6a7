"""The first schema."""

from typing import Any

from parsyn.store.tables import TABLES


def up(migrator: Any, db: Any) -> None:
    db.create_tables(TABLES)
