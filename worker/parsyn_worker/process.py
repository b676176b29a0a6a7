"""The agent as a process of its machine: one to a folder, its pid, its log, its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from parsyn.errors import ErrorCode, ParsynError
from parsyn_worker import runtime
from parsyn_worker.config import DIR_VARIABLE, AgentConfig, load_config
from parsyn_worker.standing import Standing, read_standing

PID_FILE = "agent.pid"
LOG_FILE = "agent.log"
LONGEST_LOG = 20 << 20
START_SECONDS = 20.0
STOP_SECONDS = 60.0
OBEY_SECONDS = 10.0
_SETTLED = ("ready", "refused", "draining")


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the folder's pid file while the agent runs.

    Raises ParsynError `conflict` when another agent holds it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / PID_FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ParsynError(
                ErrorCode.CONFLICT,
                f"An agent runs already with {folder} (process {running_pid(folder)})."
                " Stop it with `parsyn stop`, or give this one another --dir.",
            ) from None
        file.truncate(0)
        file.write(str(runtime.agent_pid()))
        file.flush()
        yield
        file.truncate(0)


def running_pid(folder: Path) -> int | None:
    """The process of the folder's agent, None when none runs."""
    try:
        with (folder / PID_FILE).open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text.isdecimal() else None
    except OSError:
        return None
    return None


def start_detached(folder: Path) -> int:
    """Start the agent in the background; returns its pid once it is ready, or still connecting.

    Raises ParsynError for a bad configuration, a second agent, one that ended at once, and one
    that the hub refused (which is stopped again).
    """
    config = load_config(folder)
    pid = running_pid(folder)
    if pid:
        raise ParsynError(
            ErrorCode.CONFLICT, f"The agent runs already (process {pid}). See `parsyn status`."
        )
    _rotate(folder / LOG_FILE)
    started = time.time()
    pid = _spawn(config)
    _wait_until_settled(folder, pid, started)
    return pid


def start_command(config: AgentConfig) -> tuple[list[str], dict[str, str]]:
    """(arguments, variables) that become the agent of a folder; its pid is that of the caller."""
    folder, cache = config.dir.absolute(), config.cache_dir.absolute()
    found = runtime.usable(cache)
    start = found.command(
        "parsyn_worker.main", "start", folder=folder, cache=cache, gpu=config.device != "cpu"
    )
    env = {**found.environment(), DIR_VARIABLE: str(folder)}
    # The engine's client stands for the container; what must be told is its process, which the
    # shell turns into.
    shell = ["/bin/sh", "-c", f'export {runtime.PID_VARIABLE}=$$; exec "$@"', "parsyn"]
    return ([*shell, *start] if found.kind == "container" else start), env


def _spawn(config: AgentConfig) -> int:
    """A process of its own session that writes to the log and outlives this one."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    command, env = start_command(config)
    return os.posix_spawn(
        command[0],
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(config.dir / LOG_FILE), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def _wait_until_settled(folder: Path, pid: int, started: float) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0]:
            last = (tail(folder / LOG_FILE, 1) or ["no line in its log"])[0]
            raise ParsynError(ErrorCode.UNAVAILABLE, f"The agent ended at once: {last}")
        standing = read_standing(folder)
        if standing and standing.changed_at >= started and standing.phase in _SETTLED:
            if standing.phase == "refused":
                stop(folder)
                raise ParsynError(ErrorCode.UNAUTHENTICATED, standing.error or "It was refused.")
            return
        if standing and standing.changed_at >= started and standing.error:
            # It goes on trying; whoever started it is told why it has to.
            return
        time.sleep(0.05)


def stop(folder: Path, seconds: float = STOP_SECONDS) -> bool:
    """Ask the agent to end and wait for it, in the end by force; False when none runs."""
    pid = running_pid(folder)
    if pid is None:
        return False
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        # The lock, not the pid, says whether it is gone: a zombie child keeps its pid.
        while running_pid(folder) == pid and time.monotonic() < deadline:
            time.sleep(0.05)
        if running_pid(folder) == pid:
            process.kill()
            _remove_container(folder)
    return True


def _remove_container(folder: Path) -> None:
    """What the engine's client stood for does not end with it when that is killed."""
    found = runtime.find(runtime.cache_dir(folder))
    if found.kind == "container":
        name = runtime.container_name(folder.absolute())
        subprocess.run([found.engine, "rm", "--force", name], capture_output=True, check=False)


def drain(folder: Path, *, on: bool, wait: bool) -> None:
    """Tell the running agent to take nothing new (or to take work again); `wait`: until idle.

    Raises ParsynError when no agent runs, or when it does not obey.
    """
    pid = running_pid(folder)
    if pid is None:
        raise ParsynError(ErrorCode.NOT_FOUND, "No agent runs here. Start it with `parsyn start`.")
    os.kill(pid, signal.SIGUSR1 if on else signal.SIGUSR2)

    def obeys(standing: Standing) -> bool:
        return standing.draining == on

    if not _until(folder, obeys, OBEY_SECONDS):
        raise ParsynError(ErrorCode.TIMEOUT, "The agent does not react. Look at `parsyn logs`.")
    if wait:
        _until(folder, lambda standing: not standing.tasks, float("inf"))


def _until(folder: Path, holds: Callable[[Standing], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while running_pid(folder) is not None:
        standing = read_standing(folder)
        if standing and holds(standing):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return False


def status(folder: Path) -> dict[str, Any]:
    """`running` and, as far as known, everything of `Standing`."""
    pid = running_pid(folder)
    standing = read_standing(folder)
    found: dict[str, Any] = asdict(standing) if standing else {"hub": None, "error": None}
    found["pid"] = pid
    if pid is None:
        found["phase"] = "stopped"
    return {"running": pid is not None, **found}


def follow_logs(folder: Path, follow: bool) -> Iterator[str]:
    """The last 200 lines of the agent's log, and with `follow` whatever comes."""
    path = folder / LOG_FILE
    if not path.exists():
        raise ParsynError(
            ErrorCode.NOT_FOUND,
            f"There is no log at {path}. An agent in the foreground writes to its terminal.",
        )
    yield from tail(path, 200)
    if follow:
        yield from _follow(path)


def _follow(path: Path) -> Iterator[str]:
    file = path.open(encoding="utf-8", errors="replace")
    file.seek(0, os.SEEK_END)
    rest = ""
    while True:
        part = file.readline()
        if part.endswith("\n"):
            yield (rest + part).rstrip("\n")
            rest = ""
            continue
        rest += part
        time.sleep(0.2)
        if not part and path.exists() and path.stat().st_ino != os.fstat(file.fileno()).st_ino:
            file.close()
            file = path.open(encoding="utf-8", errors="replace")


def tail(path: Path, count: int) -> list[str]:
    """The last lines of a file, without reading more of it than 1 MiB."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        return file.read().decode("utf-8", "replace").splitlines()[-count:]


def _rotate(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.stat().st_size > LONGEST_LOG:
        path.replace(path.with_suffix(".log.1"))
