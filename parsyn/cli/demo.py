"""`parsyn demo`: the main job, for real, on this machine."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from parsyn import config
from parsyn.cli.children import end_with_parent
from parsyn.cli.options import open_migrated, settings_from
from parsyn.demo.client import HubClient
from parsyn.demo.progress import Screen
from parsyn.demo.smollm2 import NAME, prepare_smollm2
from parsyn.demo.story import Outcome, Story, showcase
from parsyn.errors import ErrorCode, ParsynError
from parsyn.services import accounts, imports
from parsyn.services.context import prepare_data_dir
from parsyn.wire.states import Role

EMAIL = "demo@example.com"
READY_SECONDS = 60


@click.command("demo")
@click.option("--exit", "leave", is_flag=True, help="Stop when done, instead of serving on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object last.")
@click.option("--data", type=click.Path(path_type=Path), help="An empty folder for its data.")
@click.option("--port", type=int, default=8000, show_default=True, help="The port to serve on.")
def demo_command(leave: bool, as_json: bool, data: Path | None, port: int) -> None:
    """Fine-tune a small real model, end to end: about five minutes on two CPU cores."""
    folder = _empty_folder(data)
    screen = Screen()
    click.echo(f"Parsyn's demo. Its data: {folder}", err=True)
    password = secrets.token_urlsafe(9)
    base = _prepare(folder, password, screen)
    with _appliance(folder, port) as (url, process):
        with closing(HubClient(url, EMAIL, password)) as hub:
            outcome = Story(hub, base, folder, screen).run()
        outcome.url, outcome.email, outcome.password = url, EMAIL, password
        _tell(outcome)
        if as_json:
            click.echo(json.dumps(outcome.as_dict(), ensure_ascii=False))
        if not leave:
            click.echo("\nServing until Ctrl-C.", err=True)
            _serve_on(process)


def _empty_folder(data: Path | None) -> Path:
    if data is not None:
        prepare_data_dir(data.expanduser().absolute())
        if any(data.iterdir()):
            raise ParsynError(
                ErrorCode.CONFIG, f"{data} is not empty; the demo starts from an empty folder."
            )
        return data.expanduser().absolute()
    base = config.default_data_dir().with_name("parsyn-demo")
    numbers = [""] + [f"-{n}" for n in range(2, 1000)]
    for number in numbers:
        folder = base.with_name(f"{base.name}{number}")
        if not folder.exists() or not any(folder.iterdir()):
            prepare_data_dir(folder)
            return folder
    raise ParsynError(ErrorCode.CONFIG, f"There are too many demo folders beside {base}.")


def _prepare(folder: Path, password: str, screen: Screen) -> dict[str, Any]:
    screen.step(f"Bringing {NAME}")
    source = prepare_smollm2()
    context = open_migrated(settings_from(folder))
    try:
        with context.database.transaction():
            user = accounts.create_user(EMAIL, "Demo", password, Role.OWNER)
        with context.database.connection():
            model = imports.import_folder(context, user, source, NAME)
            base = {"id": model.id, "slug": model.slug, "name": model.name}
            size, parameters = model.size, model.parameters
    finally:
        context.close()
    screen.done(f"{parameters / 1e6:.0f} M parameters, {size / 1e6:.0f} MB")
    return base


@contextmanager
def _appliance(folder: Path, port: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [
        sys.executable, "-m", "parsyn.cli.main", "serve", "--agent",
        "--data", str(folder), "--port", str(port),
    ]  # fmt: skip
    log = folder / "logs" / "hub.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    try:
        yield _wait_ready(process, log), process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    # A hub that says nothing for so long is ended, which ends the loop below.
    limit = threading.Timer(READY_SECONDS, process.terminate)
    limit.start()
    try:
        for line in process.stdout:
            found = re.search(r"Address\s+(\S+)", line)
            if found:
                return found.group(1)
    finally:
        limit.cancel()
    last = log.read_text(errors="replace").strip().splitlines()
    raise ParsynError(
        ErrorCode.UNAVAILABLE,
        last[-1].removeprefix("parsyn: ") if last else f"The hub did not start; see {log}.",
    )


def _tell(outcome: Outcome) -> None:
    learnt = showcase()["expects"].lower() in outcome.answers["after"].lower()
    lines = [
        "",
        f"  Question            {outcome.answers['question']}",
        f"  Before              {outcome.answers['before']}",
        f"  After               {outcome.answers['after']}",
        f"  Learnt the fact     {'yes' if learnt else 'no'} ({showcase()['expects']})",
        f"  Perplexity          {outcome.perplexity_before:.2f} -> {outcome.perplexity_after:.2f}",
        f"  GGUF                {outcome.gguf_path}",
        f"  Took                {outcome.seconds:.0f} s",
        "",
        f"  Dashboard           {outcome.url}",
        f"  Log in with         {outcome.email}  /  {outcome.password}",
    ]
    click.echo("\n".join(line.replace("\r", " ") for line in lines), err=True)


def _serve_on(process: subprocess.Popen[str]) -> None:
    try:
        process.wait()
    except KeyboardInterrupt:
        click.echo("\nStopping.", err=True)
