"""`parsyn plugins`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from parsyn.cli.main import emit
from parsyn.cli.options import config_option, data_option, json_option, settings_from
from parsyn.plugin.manager import Plugins


@click.command("plugins")
@data_option
@config_option
@json_option
def plugins_command(data: Path | None, config_file: Path | None, as_json: bool) -> None:
    """List the plugins that are installed: name, kind, version, distribution, state."""
    settings = settings_from(data, config_file)
    infos = Plugins(settings.names("plugins.disabled")).infos()
    lines = [f"{'name':24} {'kind':14} {'version':10} {'from':12} state"]
    for info in infos:
        kinds = ", ".join(info.kinds) or "-"
        state = f"{info.state}: {info.error}" if info.error else info.state
        lines.append(f"{info.name:24} {kinds:14} {info.version:10} {info.distribution:12} {state}")
    emit([asdict(info) for info in infos], as_json, "\n".join(lines))
