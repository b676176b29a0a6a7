"""The `parsyn` command. Every subcommand is imported only when it is used."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

import click

from parsyn import __version__
from parsyn.errors import ErrorCode, ParsynError

COMMANDS = {
    "serve": "parsyn.cli.serve",
    "demo": "parsyn.cli.demo",
    "jobs": "parsyn.cli.jobs",
    "migrate": "parsyn.cli.migrate",
    "backup": "parsyn.cli.backup",
    "restore": "parsyn.cli.backup",
    "admin": "parsyn.cli.admin",
    "models": "parsyn.cli.models",
    "plugins": "parsyn.cli.plugins",
    "init": "parsyn.cli.agent",
    "start": "parsyn.cli.agent",
    "stop": "parsyn.cli.agent",
    "status": "parsyn.cli.agent",
    "logs": "parsyn.cli.agent",
    "drain": "parsyn.cli.agent",
    "doctor": "parsyn.cli.doctor",
    "runtime": "parsyn.cli.runtime",
    "uninstall": "parsyn.cli.uninstall",
}
HELP = {
    "serve": "Run the hub: API, web UI, embedded Valkey, job process.",
    "demo": "Fine-tune a small real model, end to end, on this machine.",
    "jobs": "Run RQ worker processes only.",
    "migrate": "Bring the database to this version's schema.",
    "backup": "Write everything that the hub keeps into one file.",
    "restore": "Put a back-up in place.",
    "admin": "Accounts, from the hub's own machine.",
    "models": "Models, from the hub's own machine.",
    "plugins": "List the plugins that are installed.",
    "init": "Set up this machine as an agent.",
    "start": "Start this machine's agent.",
    "stop": "Stop this machine's agent.",
    "status": "Say what this machine's agent does.",
    "logs": "Show the agent's log.",
    "drain": "Let this machine's agent take nothing new.",
    "doctor": "Check what can be wrong on this machine.",
    "runtime": "What runs the work on this machine.",
    "uninstall": "Remove the agent from this machine.",
}


class Lazy(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            command = getattr(importlib.import_module(COMMANDS[name]), f"{name}_command")
            return command if isinstance(command, click.Command) else None
        return _from_plugins().get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, HELP[name]) for name in COMMANDS])


def _from_plugins() -> dict[str, click.Command]:
    from parsyn import config
    from parsyn.plugin.manager import Plugins

    hook = Plugins(config.load().names("plugins.disabled")).pluggy.hook
    return {
        command.name: command
        for commands in hook.register_commands()
        for command in commands
        if command.name
    }


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="parsyn")
def cli() -> None:
    """Fine-tune language models on GPUs that you bring.

    A hub keeps everything (`parsyn serve`); agents on machines with GPUs dial out to it
    (`parsyn init`, `parsyn start`).
    """


def emit(value: Any, as_json: bool, text: str) -> None:
    """Print a result: JSON for scripts, or text for people."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str) if as_json else text)


def main(arguments: list[str] | None = None) -> None:
    """Run; an expected error is one line and an exit code (1 failed, 2 wrong usage)."""
    try:
        code = cli.main(args=arguments, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(1)
    except ParsynError as error:
        click.echo(f"parsyn: {error.detail}", err=True)
        sys.exit(2 if error.code is ErrorCode.CONFIG else 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get("PARSYN_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        click.echo(
            f"parsyn: something went wrong inside ({what}). PARSYN_DEBUG=1 shows where.", err=True
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
