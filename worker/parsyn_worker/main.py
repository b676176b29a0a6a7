"""`parsyn-worker start`, and what `parsyn init|start|stop|status|logs|doctor` call."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from parsyn.errors import ErrorCode, ParsynError
from parsyn_worker.address import HubAddress
from parsyn_worker.agent import Agent
from parsyn_worker.config import (
    ENV_FILE,
    SETTINGS,
    AgentConfig,
    default_dir,
    load_config,
    read_env,
    write_env,
)
from parsyn_worker.doctor import run_doctor
from parsyn_worker.process import (
    drain,
    follow_logs,
    only_one,
    running_pid,
    start_command,
    start_detached,
    status,
    stop,
)

__all__ = [
    "be_the_agent",
    "drain",
    "follow_logs",
    "init_worker",
    "run_doctor",
    "run_foreground",
    "start_detached",
    "status",
    "stop",
]

log = logging.getLogger("parsyn_worker")


def init_worker(
    folder: Path,
    *,
    url: str,
    key: str,
    name: str | None = None,
    worker_type: str = "both",
    device: str | None = None,
    force: bool = False,
) -> Path:
    """Write the agent's `.env` (0600) and return its path.

    `key` is an enrolment key or an agent's own. Raises ParsynError `config` for a value that
    cannot work, `conflict` when the folder is set up already and `force` is not given.
    """
    path = folder / ENV_FILE
    if read_env(path) and not force:
        raise ParsynError(
            ErrorCode.CONFLICT,
            f"{path} is there already. Use --force to replace it, or another --dir.",
        )
    if force and (pid := running_pid(folder)):
        raise ParsynError(
            ErrorCode.CONFLICT, f"The agent runs (process {pid}). Stop it with `parsyn stop`."
        )
    own = key.startswith("wkr_")
    values = {
        "PLATFORM_URL": _address(url),
        "WORKER_API_KEY": key if own else None,
        "WORKER_ENROLLMENT_KEY": None if own else key,
        "WORKER_NAME": name,
        "WORKER_TYPE": worker_type,
        "GPU_DEVICE": device,
        # Where the runtime was installed is where a start has to look for it.
        "CACHE_DIR": os.environ.get("CACHE_DIR") or None,
    }
    _check(values)
    path.unlink(missing_ok=True)
    write_env(path, values)
    return path


def _address(url: str) -> str:
    try:
        return HubAddress.parse(url).socket
    except ValueError as error:
        raise ParsynError(ErrorCode.CONFIG, f"The hub's address {error}.") from None


def _check(values: dict[str, str | None]) -> None:
    for setting in SETTINGS:
        text = values.get(setting.name)
        if text is not None:
            try:
                setting.parse(text)
            except ValueError as error:
                raise ParsynError(ErrorCode.CONFIG, f"{setting.name} {error}.") from None


def be_the_agent(folder: Path) -> None:
    """Turn this process into the agent, in the runtime that is installed here."""
    config = load_config(folder)
    command, env = start_command(config)
    if command[0] == sys.executable and env.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
        run_foreground(folder)
    else:
        os.execve(command[0], command, env)  # noqa: S606


def run_foreground(folder: Path) -> None:
    """Be the agent until SIGTERM or Ctrl-C. Raises ParsynError for what prevents a start."""
    config = load_config(folder)
    _log_to_stderr(config.log_level)
    with only_one(folder):
        asyncio.run(_serve(config))


async def _serve(config: AgentConfig) -> None:
    agent = Agent(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.stop)
    loop.add_signal_handler(signal.SIGUSR1, agent.drain, True)
    loop.add_signal_handler(signal.SIGUSR2, agent.drain, False)
    await agent.run()


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr, force=True
    )
    for noisy in ("httpx", "httpcore", "websockets", "asyncio"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(level)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="parsyn-worker",
        description="The agent in the foreground, configured by environment variables and .env.",
        epilog="Variables: " + "; ".join(f"{item.name}: {item.help}" for item in SETTINGS) + ".",
    )
    parser.add_argument("command", choices=["start"])
    parser.add_argument("--dir", type=Path, default=None, help="its folder (PARSYN_WORKER_DIR)")
    options: Any = parser.parse_args(arguments)
    try:
        run_foreground((options.dir or default_dir()).expanduser())
    except ParsynError as error:
        print(error.detail, file=sys.stderr)  # noqa: T201
        return 1
    except (OSError, sqlite3.Error) as error:
        print(f"The agent cannot work here: {error}.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
