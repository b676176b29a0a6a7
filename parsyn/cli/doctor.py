"""`parsyn doctor`: what can be wrong with the agent, or with the hub, of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from parsyn import config
from parsyn.cli.agent import agent_module, dir_option
from parsyn.cli.main import emit
from parsyn.cli.options import config_option, data_option, json_option

MARKS = {"ok": "ok  ", "warn": "warn", "error": "FAIL"}
GIVEN = (click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT)


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Repair what can be repaired.")
@dir_option
@data_option
@config_option
@json_option
@click.pass_context
def doctor_command(
    context: click.Context,
    fix: bool,
    folder: Path,
    data: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Check what can be wrong with this machine's agent or hub.

    --dir names an agent, --data or --config a hub; without them, what is set up here is checked.
    """
    folder = folder.expanduser()
    wants_agent = context.get_parameter_source("folder") in GIVEN
    wants_hub = data is not None or config_file is not None
    if not wants_agent and not wants_hub:
        wants_agent, wants_hub = _agent_is_here(folder), _hub_is_here()
        wants_agent = wants_agent or not wants_hub
    parts: list[dict[str, Any]] = []
    if wants_hub:
        from parsyn.cli.hub_doctor import examine

        where = data or config.default_data_dir()
        parts.append(_part("hub", where, examine(data, config_file, fix)))
    if wants_agent:
        rows = agent_module("doctor").run_doctor(folder, fix)
        parts.append(_part("agent", folder, rows))
    found = [{"of": part["of"], **row} for part in parts for row in part["rows"]]
    emit(found, as_json, "\n\n".join(map(_text, parts)))
    if any(row["level"] == "error" for row in found):
        sys.exit(1)


def _agent_is_here(folder: Path) -> bool:
    return (folder / ".env").exists() or bool(os.environ.get("PLATFORM_URL"))


def _hub_is_here() -> bool:
    """A hub has run on the usual data directory, or the environment speaks of one."""
    if os.environ.get("PARSYN_DATA") or os.environ.get("PARSYN_CONFIG"):
        return True
    return (config.default_data_dir() / "secret.key").exists()


def _part(of: str, where: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"of": of, "where": where.expanduser().absolute(), "rows": rows}


def _text(part: dict[str, Any]) -> str:
    lines = [f"The {part['of']} in {part['where']}"]
    for row in part["rows"]:
        lines.append(f"{MARKS[row['level']]}  {row['title']}: {row['found']}")
        if row["fixed"]:
            lines.append(f"      Repaired: {row['fixed']}.")
        if row["advice"]:
            lines.append(f"      {row['advice']}")
    return "\n".join(lines)
