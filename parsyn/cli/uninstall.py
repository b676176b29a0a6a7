"""`parsyn uninstall`: take the agent off this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from parsyn.cli.agent import agent_module, dir_option
from parsyn.errors import ErrorCode, ParsynError


@click.command("uninstall")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")
@click.option("--keep-cache", is_flag=True, help="Leave downloaded models and unsent reports.")
@dir_option
def uninstall_command(yes: bool, dry_run: bool, keep_cache: bool, folder: Path) -> None:
    """Stop the agent and remove it: its settings and key, its runtime, its cache, the command."""
    module = agent_module("uninstall")
    plan = module.plan(folder.expanduser().absolute(), keep_cache)
    for path in plan.paths:
        click.echo(path)
    if plan.image is not None:
        click.echo(f"image {plan.image.image}")
    if dry_run or not (plan.paths or plan.image):
        click.echo("Nothing was removed (--dry-run)." if plan.paths else "There is nothing here.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Without a terminal to ask on, say --yes.")
        click.confirm("Stop the agent and remove these?", abort=True)
    try:
        module.carry_out(plan)
    except OSError as error:
        raise ParsynError(
            ErrorCode.FORBIDDEN, f"{error.filename} cannot be removed: {error.strerror}."
        ) from error
    click.echo("Removed. The hub still lists this worker: remove it on its page of workers.")
