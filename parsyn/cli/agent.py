"""`parsyn init|start|stop|status|logs|drain`: this machine as an agent.

The agent is imported inside the functions: a hub need not have it installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from parsyn.cli.main import emit
from parsyn.cli.options import json_option
from parsyn.cli.origin import hub_of_origin
from parsyn.errors import ErrorCode, ParsynError

F = TypeVar("F", bound=Callable[..., Any])


def dir_option(command: F) -> F:
    """--dir DIR"""
    return click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path),
        envvar="PARSYN_WORKER_DIR",
        default=Path("~/.parsyn/worker"),
        help="The agent's folder (or PARSYN_WORKER_DIR; default ~/.parsyn/worker).",
    )(command)


def agent_module(name: str) -> Any:
    """A module of the agent. Raises ParsynError where the agent is not installed."""
    try:
        return importlib.import_module(f"parsyn_worker.{name}")
    except ImportError as error:
        raise ParsynError(
            ErrorCode.CONFIG,
            f"The agent is not installed here ({error}): pip install 'parsyn[worker]'.",
        ) from None


@click.command("init")
@click.option("--url", help="The hub's address, for example https://hub.example.org.")
@click.option("--name", help="What this machine shall be called.")
@click.option(
    "--worker-type", type=click.Choice(["both", "fine_tuner", "prompter"]), default="both",
    show_default=True, help="What it does.",
)  # fmt: skip
@click.option("--device", help="cuda:0, cuda:1, … or cpu; default: the first GPU, else cpu.")
@click.option("--key-stdin", is_flag=True, help="Read the enrolment key from standard input.")
@click.option("--non-interactive", is_flag=True, help="Ask nothing.")
@click.option("--force", is_flag=True, help="Replace an agent that is set up already.")
@dir_option
def init_command(
    url: str | None,
    name: str | None,
    worker_type: str,
    device: str | None,
    key_stdin: bool,
    non_interactive: bool,
    force: bool,
    folder: Path,
) -> None:
    """Set up this machine as an agent: asks for the hub's address and an enrolment key."""
    agent = agent_module("main")
    url = url or _address(hub_of_origin(), non_interactive)
    if key_stdin:
        key = sys.stdin.readline().strip()
    elif non_interactive:
        raise click.UsageError("--non-interactive needs --key-stdin.")
    else:
        key = click.prompt("The enrolment key (it is not shown)", hide_input=True).strip()
    path = agent.init_worker(
        folder.expanduser(), url=url, key=key, name=name, worker_type=worker_type, device=device,
        force=force,
    )  # fmt: skip
    click.echo(f"Written to {path}. Start the agent with `parsyn start`.")


def _address(origin: str | None, non_interactive: bool) -> str:
    """The hub that this command came from, unless the person names another."""
    if non_interactive:
        if origin is None:
            raise click.UsageError("--non-interactive needs --url.")
        return origin
    question = "The hub's address" + ("" if origin else " (for example https://hub.example.org)")
    return str(click.prompt(question, default=origin))


@click.command("start")
@click.option("--foreground", is_flag=True, help="Stay in the foreground.")
@dir_option
def start_command(foreground: bool, folder: Path) -> None:
    """Start this machine's agent; it detaches."""
    if foreground:
        agent_module("main").be_the_agent(folder.expanduser())
        return
    agent = agent_module("main")
    pid = agent.start_detached(folder.expanduser())
    click.echo(f"The agent runs (process {pid}). `parsyn logs -f` follows it.")
    if (error := agent.status(folder.expanduser()).get("error")) is not None:
        click.echo(f"It is not connected yet: {error}", err=True)


@click.command("stop")
@dir_option
def stop_command(folder: Path) -> None:
    """Stop this machine's agent; a running task is handed back."""
    stopped = agent_module("main").stop(folder.expanduser())
    click.echo("The agent has stopped." if stopped else "No agent runs here.")


@click.command("status")
@dir_option
@json_option
def status_command(folder: Path, as_json: bool) -> None:
    """Say what this machine's agent does."""
    found = agent_module("main").status(folder.expanduser())
    text = "\n".join(f"{key:14} {value}" for key, value in found.items() if value is not None)
    emit(found, as_json, text)
    if not found.get("running"):
        sys.exit(1)


@click.command("logs")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
@dir_option
def logs_command(follow: bool, folder: Path) -> None:
    """Show the agent's log."""
    for line in agent_module("main").follow_logs(folder.expanduser(), follow):
        click.echo(line)


@click.command("drain")
@click.option("--off", is_flag=True, help="Take work again.")
@click.option("--wait", is_flag=True, help="Return when nothing runs any more.")
@dir_option
def drain_command(off: bool, wait: bool, folder: Path) -> None:
    """Let this machine's agent finish what it runs and take nothing new."""
    agent = agent_module("main")
    agent.drain(folder.expanduser(), on=not off, wait=wait and not off)
    if off:
        click.echo("The agent takes work again.")
    elif wait:
        click.echo("The agent is idle and takes nothing new. `parsyn stop` ends it.")
    else:
        click.echo("The agent takes nothing new. `parsyn drain --off` takes that back.")
