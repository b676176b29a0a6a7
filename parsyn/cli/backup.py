"""`parsyn backup` and `parsyn restore`: everything that a hub keeps, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from parsyn import config
from parsyn.cli.locks import HUB_LOCK, holding
from parsyn.cli.main import emit
from parsyn.cli.options import config_option, data_option, json_option, settings_from
from parsyn.config import Settings
from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.manager import Plugins
from parsyn.plugin.storage import Storage
from parsyn.services import backup, restore
from parsyn.services.context import open_storage, prepare_data_dir
from parsyn.store.database import Database
from parsyn.store.migrate import status

files_option = click.option(
    "--files/--no-files",
    default=True,
    help="With the stored files (datasets, models, checkpoints), or rows and settings only.",
)


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@files_option
@data_option
@config_option
@json_option
def backup_command(
    file: Path, files: bool, data: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Write everything that the hub keeps into FILE (.tar.zst); the hub may run meanwhile."""
    settings = settings_from(data, config_file)
    schema = _schema(settings)
    storage = _storage(settings) if files else None
    manifest, written = backup.write(file.absolute(), settings, storage, schema)
    result = {
        "file": str(file),
        "size": file.stat().st_size,
        "made_at": manifest.made_at,
        "database": manifest.database,
        "schema": manifest.schema[-1],
        "rows": written.rows,
        "files": written.files,
        "file_bytes": written.bytes,
        "missing": written.missing,
    }
    emit(result, as_json, f"{file}: {written.rows:,} rows, {written.files:,} files, "
         f"{result['size']:,} bytes. It holds secrets: keep it as you keep those.")  # fmt: skip


def _schema(settings: Settings) -> list[str]:
    folder, url = settings.data_dir, settings.text("hub.database")
    if url == "sqlite" and not (folder / "parsyn.db").exists():
        raise ParsynError(
            ErrorCode.CONFIG, f"There is no hub in {folder}; name its folder with --data."
        )
    database = Database(url, folder)
    try:
        return [name for name, applied in status(database) if applied]
    finally:
        database.close()


def _storage(settings: Settings) -> Storage:
    return open_storage(settings, Plugins(settings.names("plugins.disabled")))


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Check the file and say what is in it.")
@click.option("--force", is_flag=True, help="Replace a hub that is there already.")
@files_option
@data_option
@config_option
@json_option
def restore_command(
    file: Path,
    dry_run: bool,
    force: bool,
    files: bool,
    data: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Put a back-up in place, on either database; the hub must be stopped."""
    if dry_run:
        _say(restore.inspect(file).manifest, as_json, f"{file} is whole. It holds")
        return
    data_dir = (data or config.default_data_dir()).expanduser().absolute()
    prepare_data_dir(data_dir)

    def load_settings(from_archive: Path) -> Settings:
        own = config_file or os.environ.get("PARSYN_CONFIG") or (data_dir / "parsyn.toml").exists()
        chosen = config_file if own or not from_archive.exists() else from_archive
        return config.load(data_dir=data_dir, config=chosen)

    with _stopped(data_dir):
        manifest = restore.restore(
            file, data_dir, load_settings, _storage, force=force, files=files
        )
    _say(manifest, as_json, f"Restored into {data_dir}:")


@contextmanager
def _stopped(data_dir: Path) -> Iterator[None]:
    with holding(data_dir / HUB_LOCK) as (held, pid):
        if held is None:
            raise ParsynError(
                ErrorCode.INVALID_STATE,
                f"A hub runs on {data_dir} (process {pid}); stop it before a restore.",
            )
        yield


def _say(manifest: Any, as_json: bool, opening: str) -> None:
    count = {entry.name: entry.rows for entry in manifest.tables}
    result = {
        "made_at": manifest.made_at,
        "parsyn": manifest.parsyn,
        "database": manifest.database,
        "schema": manifest.schema[-1] if manifest.schema else None,
        "rows": count,
        "files": manifest.files,
    }
    text = (
        f"{opening} a hub of Parsyn {manifest.parsyn} on {manifest.database}, {manifest.made_at}, "
        f"{sum(count.values()):,} rows ({count.get('users', 0)} accounts, {count.get('jobs', 0)} "
        f"jobs), {'with' if manifest.files else 'without'} stored files."
    )
    emit(result, as_json, text)
