"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from parsyn import config
from parsyn.config import Settings, Value

if TYPE_CHECKING:
    from parsyn.services.context import Context

EMBEDDED_ADDRESS = "valkey.url"
"""In the data directory, while a hub with an embedded Valkey runs: where that is."""
F = TypeVar("F", bound=Callable[..., Any])


def data_option(command: F) -> F:
    """--data DIR"""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=True),
        help="The data directory (or PARSYN_DATA).",
    )(command)


def config_option(command: F) -> F:
    """--config FILE"""
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        help="The settings file (or PARSYN_CONFIG).",
    )(command)


def json_option(command: F) -> F:
    """--json"""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def settings_from(
    data: Path | None, config_file: Path | None = None, **flags: Value | None
) -> Settings:
    """Settings with the flags that were given; a flag `host` stands for `hub.host`."""
    given = {f"hub.{name}": value for name, value in flags.items() if value is not None}
    return config.load(data_dir=data, config=config_file, flags=given)


def open_migrated(settings: Settings) -> Context:
    """A context for a command on the hub's own machine; migrates first.

    A hub that runs on the same data is told what changes; without one there is nobody to tell.
    """
    # An agent's commands share the options above and need none of the hub.
    from parsyn.services.context import open_context
    from parsyn.store.migrate import migrate

    context = open_context(settings, embedded_redis(settings))
    migrate(context.database)
    return context


def embedded_redis(settings: Settings) -> str | None:
    """The address of the embedded Valkey of a hub that runs on this data directory."""
    path = settings.data_dir / EMBEDDED_ADDRESS
    url = path.read_text().strip() if path.exists() else ""
    return url if url and Path(url.removeprefix("unix://")).exists() else None
