"""The hub's `parsyn doctor`: database, Redis, storage, job processes, plugins, clock."""

from __future__ import annotations

import time
from typing import Any

import redis as redis_client

from parsyn.cli.hub_patient import HubPatient
from parsyn.cli.options import EMBEDDED_ADDRESS
from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.check import Finding
from parsyn.plugin.manager import Plugins
from parsyn.queue import QUEUE
from parsyn.services.context import open_storage
from parsyn.store.migrate import migrate, status
from parsyn.store.outbox import Outbox
from parsyn.store.users import User

CLOCK_SECONDS = 5.0
LATE_SECONDS = 600.0


def database(patient: HubPatient) -> Finding:
    """Reached; a file is also read through."""
    if patient.database_is_file and not patient.database.path.exists():
        return Finding("ok", "SQLite, none yet; the first start makes it")
    try:
        patient.database.check()
        problem = _damage(patient)
    except ParsynError as error:
        return Finding("error", error.detail, "Is the server up? Does hub.database name it?")
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Finding("error", f"a query failed ({first})", "Restore a back-up: parsyn restore.")
    if problem:
        return Finding("error", f"damaged ({problem})", "Restore a back-up: parsyn restore.")
    if patient.database_is_file:
        size = patient.database.path.stat().st_size / 2**20
        return Finding("ok", f"SQLite, {size:.1f} MiB, whole")
    return Finding("ok", "PostgreSQL answers")


def _damage(patient: HubPatient) -> str | None:
    if not patient.database_is_file:
        return None
    with patient.database.connection():
        row = patient.database.peewee.execute_sql("PRAGMA quick_check(1)").fetchone()
    return None if row[0] == "ok" else str(row[0])


def schema(patient: HubPatient) -> Finding:
    pending = _pending(patient)
    if pending is None:
        return Finding("ok", "none yet")
    if pending:
        return Finding(
            "warn",
            f"{len(pending)} steps behind this version ({pending[0]})",
            "`parsyn serve` does them at its start; so do `parsyn migrate` and --fix.",
        )
    return Finding("ok", "this version's")


def bring_to_schema(patient: HubPatient) -> str | None:
    """Only while no hub of another version works with it."""
    if patient.pid is not None or not _pending(patient):
        return None
    return f"applied {', '.join(migrate(patient.database))}"


def _pending(patient: HubPatient) -> list[str] | None:
    """Migrations that are not applied; None where there is no database yet. Raises for a newer."""
    if patient.database_is_file and not patient.database.path.exists():
        return None
    rows = status(patient.database)
    with patient.database.connection():
        from parsyn.store.migrate import PackagedRunner

        known = {row.name for row in PackagedRunner(patient.database.peewee).migrations()}
    newer = [name for name, _ in rows if name not in known]
    if newer:
        raise ParsynError(
            ErrorCode.CONFIG, f"a newer Parsyn made it (it has {newer[-1]}). Start that version."
        )
    return [name for name, applied in rows if applied is None]


def redis(patient: HubPatient) -> Finding:
    """The configured one, or the embedded one while a hub runs."""
    embedded = not patient.settings.text("hub.redis")
    if embedded and patient.pid is None:
        if (patient.data / EMBEDDED_ADDRESS).exists():
            return Finding(
                "warn", "the embedded Valkey's address is left of a hub that died", "--fix."
            )
        return Finding("ok", "the embedded Valkey, which starts with the hub")
    if patient.redis_url is None:
        return Finding("error", "the hub runs without its embedded Valkey", "Restart the hub.")
    try:
        info: dict[str, Any] = patient.redis.info()
    except redis_client.RedisError as error:
        todo = "See logs/valkey.log." if embedded else "Is it up? Does hub.redis name it?"
        return Finding("error", f"does not answer ({error})", todo)
    name = "embedded Valkey" if embedded else "Redis"
    text = f"{name} {info.get('valkey_version') or info.get('redis_version')}"
    if info.get("maxmemory") and info.get("maxmemory_policy") != "noeviction":
        return Finding(
            "warn",
            f"{text} drops keys when it is full ({info['maxmemory_policy']})",
            "Set maxmemory-policy noeviction: RQ's jobs are keys.",
        )
    return Finding("ok", f"{text} answers")


def forget_embedded(patient: HubPatient) -> str | None:
    path = patient.data / EMBEDDED_ADDRESS
    if patient.pid is not None or not path.exists():
        return None
    path.unlink()
    return f"removed {path}"


def storage(patient: HubPatient) -> Finding:
    """It takes a file."""
    plugins = Plugins(patient.settings.names("plugins.disabled"))
    name = patient.settings.text("storage.use")
    if not patient.data.exists():
        return Finding("ok", f"{name}; nothing stored yet")
    open_storage(patient.settings, plugins).check()
    return Finding("ok", f"{name} takes files")


def jobs(patient: HubPatient) -> Finding:
    """RQ's processes, and what waits for them."""
    if patient.redis_url is None:
        return Finding("ok", "they start with the hub")
    from rq import Queue, Worker

    try:
        workers = Worker.all(connection=patient.redis)
        waiting = Queue(QUEUE, connection=patient.redis).count
    except redis_client.RedisError as error:
        return Finding("error", f"Redis does not answer ({error})", "See Redis.")
    text = f"{len(workers)} at work, {waiting} jobs wait"
    if not workers and (waiting or patient.pid is not None):
        return Finding(
            "error", text, "Start one: `parsyn jobs`, or `parsyn serve` without --no-jobs."
        )
    return Finding("ok", text)


def outbox(patient: HubPatient) -> Finding:
    """Effects (notices, deletions, hooks) that are long due."""
    if _pending(patient) != []:
        return Finding("ok", "none")
    late = (Outbox.done_at.is_null()) & (Outbox.next_at < time.time() - LATE_SECONDS)
    with patient.database.connection():
        count = Outbox.select().where(late).count()
    if count and patient.pid is not None:
        return Finding("warn", f"{count} are long due", "See Job processes, and logs/jobs-0.log.")
    return Finding("ok", f"{count} wait" if count else "none wait")


def plugins(patient: HubPatient) -> Finding:
    disabled = patient.settings.names("plugins.disabled")
    found = Plugins(disabled)
    if found.failed:
        first = ", ".join(f"{name} ({error})" for name, error in sorted(found.failed.items()))
        return Finding("warn", f"do not load: {first}", "Reinstall them, or disable them.")
    infos = found.infos()
    unknown = sorted(set(disabled) - {info.name for info in infos})
    if unknown:
        return Finding(
            "warn", f"plugins.disabled names {', '.join(unknown)}, which is not installed", "Spelt?"
        )
    return Finding("ok", f"{sum(info.state == 'enabled' for info in infos)} enabled")


def clock(patient: HubPatient) -> Finding:
    """Against the database's server or Redis, and against what was written before."""
    off = _against_others(patient)
    if off is not None and abs(off) > CLOCK_SECONDS:
        return Finding(
            "warn",
            f"{abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the servers it works with",
            "Set both: timedatectl set-ntp true.",
        )
    if _pending(patient) == []:
        with patient.database.connection():
            newest = User.select(User.created_at).order_by(User.created_at.desc()).first()
        if newest is not None and newest.created_at > time.time() + CLOCK_SECONDS:
            return Finding("warn", "it was later when the last account was made", "Set the clock.")
    return Finding("ok", "plausible" if off is None else "fits the servers it works with")


def _against_others(patient: HubPatient) -> float | None:
    """Seconds by which this clock is ahead of PostgreSQL's or Redis'; None without either."""
    if not patient.database_is_file:
        with patient.database.connection():
            sql = "SELECT extract(epoch FROM clock_timestamp())"
            return time.time() - float(patient.database.peewee.execute_sql(sql).fetchone()[0])
    if patient.settings.text("hub.redis"):
        try:
            seconds, micros = patient.redis.time()
        except redis_client.RedisError:
            return None
        return time.time() - (float(seconds) + float(micros) / 1e6)
    return None
