"""Putting a back-up in place: into a folder of its own and one transaction, then all at once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from parsyn.config import Settings
from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.storage import Storage
from parsyn.services.backup import Manifest
from parsyn.services.unpacking import Unpacked, unpack
from parsyn.store import rows
from parsyn.store.database import Database
from parsyn.store.migrate import bring_to, bring_up

Open = Callable[[Settings], Storage]
LoadSettings = Callable[[Path], Settings]
STAGING = ".restoring"
REPLACED = ("parsyn.db", "parsyn.db-wal", "parsyn.db-shm", "metrics.db", "metrics.db-wal",
            "metrics.db-shm", "secret.key")  # fmt: skip
FROM_BACKUP = "parsyn.toml.from-backup"


def inspect(source: Path) -> Unpacked:
    """Read and check the whole archive, and keep nothing."""
    with tempfile.TemporaryDirectory(prefix="parsyn-restore-") as folder:
        return unpack(source, Path(folder), lambda key, chunks: _drain(chunks))


def _drain(chunks: Iterator[bytes]) -> None:
    for _ in chunks:
        pass


def restore(
    source: Path,
    data_dir: Path,
    load_settings: LoadSettings,
    open_storage: Open,
    *,
    force: bool,
    files: bool,
) -> Manifest:
    """Restore `source` into `data_dir` and the database that the settings name.

    `load_settings` is given the archive's own parsyn.toml, for where there is no other. What was
    there before is moved into a folder beside it (a PostgreSQL database is replaced). Raises
    ParsynError, and then nothing has changed.
    """
    with _staging(data_dir) as staging:
        held: list[Storage] = []
        opened: dict[str, Settings] = {}

        def settings() -> Settings:
            if "settings" not in opened:
                opened["settings"] = load_settings(staging / "archive" / "parsyn.toml")
                _refuse_used(opened["settings"], data_dir, force)
            return opened["settings"]

        def take_file(key: str, chunks: Iterator[bytes]) -> None:
            if not files:
                _drain(chunks)
                return
            if not held:
                held.append(open_storage(replace(settings(), data_dir=staging)))
            held[0].put(key, chunks)

        (staging / "archive").mkdir()
        unpacked = unpack(source, staging / "archive", take_file)
        _store(unpacked, settings(), staging)
        _swap(unpacked, staging, data_dir, files=bool(held))
    return unpacked.manifest


@contextmanager
def _staging(data_dir: Path) -> Iterator[Path]:
    folder = data_dir / STAGING
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_used(settings: Settings, data_dir: Path, force: bool) -> None:
    if force:
        return
    on_sqlite = settings.text("hub.database") == "sqlite"
    if (data_dir / "parsyn.db").exists() if on_sqlite else not _is_empty(settings):
        where = data_dir if on_sqlite else "The database"
        raise ParsynError(
            ErrorCode.INVALID_STATE,
            f"{where} holds a hub already. --force replaces it by the back-up.",
        )


def _is_empty(settings: Settings) -> bool:
    database = Database(settings.text("hub.database"), settings.data_dir)
    try:
        return rows.is_empty(database)
    finally:
        database.close()


def _store(unpacked: Unpacked, settings: Settings, staging: Path) -> None:
    database = Database(settings.text("hub.database"), staging)
    try:
        with database.transaction():
            if not database.is_sqlite:
                rows.drop_all(database)
            bring_to(database, unpacked.manifest.schema)
            for layout in unpacked.layouts("rows"):
                rows.store(database, layout, unpacked.rows(layout))
            bring_up(database)
            for layout in unpacked.layouts("metrics"):
                if database.is_sqlite:
                    rows.store_metrics_file(staging, layout, unpacked.rows(layout))
                else:
                    rows.store_metrics(database, layout, unpacked.rows(layout))
    finally:
        database.close()


def _swap(unpacked: Unpacked, staging: Path, data_dir: Path, files: bool) -> None:
    archive = staging / "archive"
    new = {name: staging / name for name in ("parsyn.db", "metrics.db")}
    new["secret.key"] = archive / "secret.key"
    own_settings = (data_dir / "parsyn.toml").exists()
    new[FROM_BACKUP if own_settings else "parsyn.toml"] = archive / "parsyn.toml"
    if files:
        new["storage"] = staging / "storage"
    _put_aside(data_dir, [*REPLACED, FROM_BACKUP, *(["storage"] if files else [])])
    for name, path in new.items():
        if path.exists():
            path.chmod(0o700 if path.is_dir() else 0o600)
            path.rename(data_dir / name)


def _put_aside(data_dir: Path, names: list[str]) -> None:
    there = [name for name in names if (data_dir / name).exists()]
    if there:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        aside = data_dir / f"before-restore-{stamp}"
        aside.mkdir(mode=0o700)
        for name in there:
            (data_dir / name).rename(aside / name)
