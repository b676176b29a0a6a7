"""`parsyn migrate`."""

from __future__ import annotations

from pathlib import Path

import click

from parsyn.cli.main import emit
from parsyn.cli.options import config_option, data_option, json_option, settings_from
from parsyn.services.context import prepare_data_dir
from parsyn.store.database import Database
from parsyn.store.migrate import migrate, status


@click.command("migrate")
@click.option("--status", "only_status", is_flag=True, help="Say what is applied, change nothing.")
@data_option
@config_option
@json_option
def migrate_command(
    only_status: bool, data: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Bring the database to this version's schema."""
    settings = settings_from(data, config_file)
    prepare_data_dir(settings.data_dir)
    database = Database(settings.text("hub.database"), settings.data_dir)
    try:
        applied = [] if only_status else migrate(database)
        rows = [{"name": name, "applied": at} for name, at in status(database)]
    finally:
        database.close()
    lines = [f"{'applied' if row['applied'] else 'pending':8} {row['name']}" for row in rows]
    emit({"applied_now": applied, "migrations": rows}, as_json, "\n".join(lines))
