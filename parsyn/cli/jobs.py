"""`parsyn jobs`: RQ worker processes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from parsyn.cli.log_lines import set_up_logging
from parsyn.cli.options import config_option, data_option, settings_from
from parsyn.errors import ErrorCode, ParsynError
from parsyn.jobs.process import work


@click.command("jobs")
@click.option("--burst", is_flag=True, help="Stop when the queue is empty.")
@data_option
@config_option
def jobs_command(burst: bool, data: Path | None, config_file: Path | None) -> None:
    """Run one RQ worker process, for a hub whose Redis is `hub.redis`."""
    settings = settings_from(data, config_file)
    if not settings.text("hub.redis"):
        raise ParsynError(
            ErrorCode.CONFIG,
            "The embedded Valkey belongs to `parsyn serve`. Set hub.redis to run jobs apart.",
        )
    set_up_logging(settings)
    os.environ["PARSYN_DATA"] = str(settings.data_dir)
    if config_file:
        os.environ["PARSYN_CONFIG"] = str(config_file.absolute())
    work(burst)
