"""`parsyn doctor` on a hub's machine; works whether or not the hub runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from parsyn.cli import hub_checks, hub_parts
from parsyn.cli.hub_patient import HubPatient
from parsyn.cli.options import settings_from
from parsyn.errors import ParsynError
from parsyn.plugin.check import Check, Finding, as_row, check_failed, repaired
from parsyn.plugin.manager import Plugins


@dataclass(frozen=True)
class HubCheck:
    """One thing that can be wrong. `run` looks and changes nothing; `fix` repairs what it found
    and says what it did, or None where it can do nothing."""

    title: str
    run: Callable[[HubPatient], Finding]
    fix: Callable[[HubPatient], str | None] | None = None


CHECKS = (
    HubCheck("Data directory", hub_checks.data_directory, hub_checks.make_data_directory),
    HubCheck("Secret key", hub_checks.secret, hub_checks.protect_secret),
    HubCheck("Disk", hub_checks.disk),
    HubCheck("Database", hub_parts.database),
    HubCheck("Schema", hub_parts.schema, hub_parts.bring_to_schema),
    HubCheck("Redis", hub_parts.redis, hub_parts.forget_embedded),
    HubCheck("Storage", hub_parts.storage),
    HubCheck("Port", hub_checks.port),
    HubCheck("Address", hub_checks.address),
    HubCheck("Job processes", hub_parts.jobs),
    HubCheck("Effects", hub_parts.outbox),
    HubCheck("Plugins", hub_parts.plugins),
    HubCheck("Web UI", hub_checks.web_ui),
    HubCheck("Clock", hub_parts.clock),
)


def examine(data: Path | None, config_file: Path | None, fix: bool) -> list[dict[str, Any]]:
    """Every check as {"title", "level": "ok"|"warn"|"error", "found", "advice", "fixed"}."""
    try:
        settings = settings_from(data, config_file)
    except ParsynError as error:
        return [as_row("Settings", Finding("error", error.detail, "Correct that and repeat."))]
    source = f"from {settings.source}" if settings.source else "defaults and the environment"
    rows = [as_row("Settings", Finding("ok", source))]
    patient = HubPatient(settings)
    try:
        for check in (*CHECKS, *_of_plugins(settings.names("plugins.disabled"))):
            row = as_row(check.title, _look(check, patient))
            if fix and check.fix is not None and row["level"] != "ok":
                row = repaired(row, partial(check.fix, patient), partial(_look, check, patient))
            rows.append(row)
    finally:
        patient.close()
    return rows


def _look(check: HubCheck, patient: HubPatient) -> Finding:
    try:
        return check.run(patient)
    except ParsynError as error:
        return Finding("error", error.detail, None)
    except Exception as error:
        return check_failed(error, "Look at the hub's log.")


def _of_plugins(disabled: list[str]) -> list[HubCheck]:
    """The checks that plugins registered, after our own."""
    offered = Plugins(disabled).pluggy.hook.register_checks()
    return [HubCheck(cls.title, _runner(cls)) for classes in offered for cls in classes]


def _runner(cls: type[Check]) -> Callable[[HubPatient], Finding]:
    return lambda _: cls().run()
