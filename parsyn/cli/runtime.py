"""`parsyn runtime install|show`: what runs the work on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from parsyn.cli.agent import agent_module, dir_option
from parsyn.cli.main import emit
from parsyn.cli.options import json_option


@click.group("runtime")
def runtime_command() -> None:
    """What runs the work on this machine: an environment, an image, or your own Python."""


@runtime_command.command("install")
@click.option(
    "--kind", type=click.Choice(["auto", "container", "venv", "existing"]), default="auto",
    show_default=True, help="What to make; auto takes a container where a GPU can get into one.",
)  # fmt: skip
@click.option("--python", help="The Python to use, or for a venv to build upon.")
@click.option(
    "--with", "extras", type=click.Choice(["gguf"]), multiple=True,
    help="Also what an export format needs; gguf is compiled here.",
)  # fmt: skip
@click.option("--index", help="A further package index, for example one with CPU builds of torch.")
@click.option("--base-image", default="python:3.11-slim", show_default=True,
              help="What an image is built upon.")  # fmt: skip
@dir_option
def install_command(
    kind: str,
    python: str | None,
    extras: tuple[str, ...],
    index: str | None,
    base_image: str,
    folder: Path,
) -> None:
    """Make the runtime, or bring it to this version; drivers are never touched."""
    agent_module("main")
    from parsyn_worker import runtime, runtime_install

    cache = runtime.cache_dir(folder.expanduser())
    wanted = runtime_install.Wanted(cache, python, extras, index, base_image)
    runtime_install.install(kind, wanted, click.echo)


@runtime_command.command("show")
@dir_option
@json_option
def show_command(folder: Path, as_json: bool) -> None:
    """Say which runtime is used."""
    agent_module("main")
    from parsyn_worker import runtime, runtime_install

    found = runtime.find(runtime.cache_dir(folder.expanduser()))
    emit(asdict(found), as_json, runtime_install.describe(found))
