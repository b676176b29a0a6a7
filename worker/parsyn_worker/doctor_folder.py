"""Checks of the agent's own files: settings, rights, a stale status, reports that wait."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

from parsyn.plugin.check import Finding
from parsyn_worker.address import HubAddress
from parsyn_worker.config import ENV_FILE, write_env
from parsyn_worker.patient import Patient
from parsyn_worker.process import PID_FILE, running_pid
from parsyn_worker.standing import FILE, StandingFile, read_standing

OLD_SECONDS = 7 * 24 * 3600.0
KEYS = {"WORKER_API_KEY": "wkr_", "WORKER_ENROLLMENT_KEY": "enroll_"}


def put_right(patient: Patient) -> str | None:
    """Keys that stand under one another's name change places; None where that is not the fault."""
    found = {name: patient.file.get(name, "").strip() for name in KEYS}
    wrong = [name for name, key in found.items() if key and not key.startswith(KEYS[name])]
    if not wrong:
        return None
    placed: dict[str, str | None] = dict.fromkeys(KEYS)
    for key in found.values():
        for name, prefix in KEYS.items():
            if key.startswith(prefix):
                placed[name] = key
    if not any(placed.values()):
        return None
    write_env(patient.folder / ENV_FILE, placed)
    return "the keys in .env stand under their own names now"


def address(patient: Patient) -> Finding:
    hub, text = patient.hub, patient.file.get("PLATFORM_URL", "")
    if text and text != HubAddress.parse(text).socket:
        return Finding(
            "warn", f"{text} is short for {HubAddress.parse(text).socket}", "--fix writes it out."
        )
    if not hub.secure and not hub.local:
        return Finding(
            "warn",
            f"{hub.socket} is not encrypted",
            "Whoever is on the way can read the key: give the hub a certificate and use https://.",
        )
    return Finding("ok", hub.socket)


def complete_address(patient: Patient) -> str | None:
    text = patient.file.get("PLATFORM_URL", "")
    if not text or text == HubAddress.parse(text).socket:
        return None
    write_env(patient.folder / ENV_FILE, {"PLATFORM_URL": HubAddress.parse(text).socket})
    return f"PLATFORM_URL is {HubAddress.parse(text).socket}"


def rights(patient: Patient) -> Finding:
    """The file with the key is its owner's only, the folders can be written to."""
    env = patient.folder / ENV_FILE
    if env.exists() and _mode(env) & 0o077:
        return Finding(
            "error",
            f"others may read {env}, which holds the key ({_mode(env):04o})",
            f"--fix, or: chmod 600 {env}",
        )
    for folder in (patient.folder, patient.cache):
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            return Finding(
                "error", f"{folder} cannot be written to", "Change its owner, or name another."
            )
        if nearest != folder:
            return Finding("warn", f"{folder} is not there yet", "--fix makes it; so does a start.")
    return Finding("ok", f"{patient.folder} and {patient.cache} are private and writable")


def make_private(patient: Patient) -> str | None:
    env, done = patient.folder / ENV_FILE, []
    for folder in (patient.folder, patient.cache):
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700)
            done.append(f"made {folder}")
    if env.exists() and _mode(env) & 0o077:
        env.chmod(0o600)
        done.append(f"{env} is its owner's only")
    return "; ".join(done) or None


def agent(patient: Patient) -> Finding:
    """Whether one runs, and what it last said of itself."""
    pid, standing = running_pid(patient.folder), read_standing(patient.folder)
    if pid is None:
        if standing and standing.phase != "stopped":
            return Finding(
                "warn",
                f"the last one (process {standing.pid}) ended without a goodbye",
                "Look at the end of `parsyn logs`, then `parsyn start`. --fix forgets it.",
            )
        return Finding("ok", "none runs; `parsyn start` starts it")
    phase = standing.phase if standing else "starting"
    text = f"process {pid}, {phase}" + (f", worker {standing.name}" if standing else "")
    if phase == "refused":
        return Finding("error", f"{text}: {standing and standing.error}", "It asks again seldom.")
    if phase == "connecting" and standing and standing.error:
        return Finding("warn", f"{text}: {standing.error}", "It goes on trying.")
    return Finding("ok", text)


def clear_stale(patient: Patient) -> str | None:
    standing = read_standing(patient.folder)
    if running_pid(patient.folder) is not None or standing is None:
        return None
    if standing.phase == "stopped":
        return None
    file = StandingFile(patient.folder, standing)
    file.update(phase="stopped", tasks=[], pid=0)
    (patient.folder / PID_FILE).unlink(missing_ok=True)
    return f"{FILE} says stopped now"


def spool(patient: Patient) -> Finding:
    """What waits on disk for the hub, of this device and of others."""
    waiting = []
    for path in _spools(patient.cache):
        count, oldest, problem = _look_into(path)
        if problem:
            return Finding(
                "error",
                f"{path} is damaged ({problem})",
                "Stop the agent and use --fix: it is set aside, and a new one begun.",
            )
        if count:
            waiting.append(f"{count} of {path.parent.name}")
            if time.time() - oldest > OLD_SECONDS and path.parent.name != _name(patient.device):
                return Finding(
                    "warn",
                    f"{count} reports of {path.parent.name} have waited for over a week",
                    f"Start an agent with that GPU_DEVICE once, or remove {path.parent}.",
                )
    return Finding("ok", f"waiting for the hub: {', '.join(waiting) or 'none'}")


def set_aside(patient: Patient) -> str | None:
    """A damaged spool gets out of the way; it is kept, for whoever can read it."""
    if running_pid(patient.folder) is not None:
        return None
    for path in _spools(patient.cache):
        if _look_into(path)[2]:
            target = path.with_name(f"spool.damaged-{int(time.time())}.db")
            path.replace(target)
            for rest in ("-wal", "-shm"):
                path.with_name(path.name + rest).unlink(missing_ok=True)
            return f"the damaged file is {target} now"
    return None


def _spools(cache: Path) -> list[Path]:
    return sorted((cache / "state").glob("*/spool.db"))


def _look_into(path: Path) -> tuple[int, float, str | None]:
    """(messages that wait, when the file was last written, what is wrong with it)."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as database:
            problem = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            count = int(database.execute("SELECT count(*) FROM message").fetchone()[0])
    except sqlite3.Error as error:
        if "locked" in str(error):
            return 0, time.time(), None
        return 0, 0.0, str(error)
    return count, path.stat().st_mtime, None if problem == "ok" else str(problem)


def _name(device: str) -> str:
    return device.replace(":", "-")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
