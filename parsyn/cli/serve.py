"""`parsyn serve`: the hub with everything it needs, on one machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from parsyn import __version__
from parsyn.cli.children import Child, EmbeddedValkey
from parsyn.cli.local_agent import LocalAgent
from parsyn.cli.locks import HUB_LOCK, holding
from parsyn.cli.log_lines import set_up_logging
from parsyn.cli.options import EMBEDDED_ADDRESS, config_option, data_option, settings_from
from parsyn.config import Settings
from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.app import create_app
from parsyn.hub.server import bind, serve
from parsyn.services import accounts
from parsyn.services.context import Context, open_context, prepare_data_dir
from parsyn.store.migrate import migrate


@click.command("serve")
@data_option
@click.option("--host", help="The address to bind (default 127.0.0.1).")
@click.option("--port", type=int, help="The port to bind (default 8000).")
@click.option("--agent", is_flag=True, help="Also run a local agent.")
@click.option("--no-jobs", is_flag=True, help="Start no RQ process; run `parsyn jobs` elsewhere.")
@config_option
def serve_command(
    data: Path | None,
    host: str | None,
    port: int | None,
    agent: bool,
    no_jobs: bool,
    config_file: Path | None,
) -> None:
    """Run the hub: API, web UI, embedded Valkey, job process."""
    settings = settings_from(data, config_file, host=host, port=port)
    set_up_logging(settings)
    run_hub(settings, agent=agent, jobs=not no_jobs)


def run_hub(settings: Settings, *, agent: bool, jobs: bool) -> None:
    """Serve until a signal; every child that was started is stopped."""
    prepare_data_dir(settings.data_dir)
    with ExitStack() as stack:
        stack.enter_context(_sole_owner(settings))
        listener = stack.enter_context(bind(settings))
        port = listener.getsockname()[1]
        settings = settings_with_port(settings, port)
        redis_url = settings.text("hub.redis") or _valkey(settings, stack)
        context = open_context(settings, redis_url)
        stack.callback(context.close)
        migrate(context.database)
        processes = settings.integer("jobs.processes") if jobs else 0
        for number in range(processes):
            _job_process(settings, redis_url, number, stack)
        app = create_app(context)
        if agent:
            stack.enter_context(_only_agent(settings.data_dir))
            local = LocalAgent(context)
            stack.callback(local.stop)
            local.start()
        asyncio.run(serve(app, settings, listener, lambda: _greet(context)))


def settings_with_port(settings: Settings, port: int) -> Settings:
    """The same settings with the port that was really bound (port 0 asks for any)."""
    return Settings(settings.data_dir, {**settings.values, "hub.port": port}, settings.source)


@contextmanager
def _sole_owner(settings: Settings) -> Iterator[None]:
    """Only processes that meet in PostgreSQL and Redis may share a data directory."""
    shared = settings.text("hub.database") != "sqlite" and bool(settings.text("hub.redis"))
    with holding(settings.data_dir / HUB_LOCK, shared) as (file, pid):
        if file is None:
            raise ParsynError(
                ErrorCode.UNAVAILABLE,
                f"A hub already runs on {settings.data_dir} (process {pid}). "
                "Stop it first, or name another directory with --data.",
            )
        yield


@contextmanager
def _only_agent(data_dir: Path) -> Iterator[None]:
    with holding(data_dir / "agent.lock") as (file, pid):
        if file is None:
            raise ParsynError(
                ErrorCode.UNAVAILABLE,
                f"A hub process ({pid}) already runs the local agent of {data_dir}; "
                "start this one without --agent.",
            )
        yield


def _valkey(settings: Settings, stack: ExitStack) -> str:
    valkey = EmbeddedValkey(settings.data_dir / "logs" / "valkey.log")
    stack.callback(valkey.stop)
    valkey.start()
    address = settings.data_dir / EMBEDDED_ADDRESS
    address.write_text(valkey.url)
    stack.callback(address.unlink, missing_ok=True)
    return valkey.url


def _job_process(settings: Settings, redis_url: str, number: int, stack: ExitStack) -> None:
    env = {
        **os.environ,
        "PARSYN_DATA": str(settings.data_dir),
        "PARSYN_HUB_REDIS": redis_url,
        # macOS aborts forked children that touch Objective-C; harmless elsewhere.
        "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",
    }
    if settings.source:
        env["PARSYN_CONFIG"] = str(settings.source.absolute())
    child = Child(
        f"jobs-{number}",
        [sys.executable, "-m", "parsyn.cli.main", "jobs"],
        env,
        settings.data_dir / "logs" / f"jobs-{number}.log",
    )
    stack.callback(child.stop)
    child.start()


def _greet(context: Context) -> None:
    settings = context.settings
    lines = [f"Parsyn {__version__} is ready.", f"  Address         {settings.url}"]
    lines.append(f"  Data directory  {settings.data_dir}")
    with context.database.transaction():
        if accounts.needs_setup():
            token = accounts.create_setup_token()
            lines.append(f"  Set-up link     {settings.url}/setup?token={token}")
            lines.append("                  (once, within 30 minutes)")
    click.echo("\n".join(lines))
