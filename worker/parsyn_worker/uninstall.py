"""Taking the agent off this machine again: what would be removed, and removing it."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from parsyn_worker import runtime
from parsyn_worker.config import ENV_FILE
from parsyn_worker.process import LOG_FILE, PID_FILE, stop
from parsyn_worker.standing import FILE

OF_AGENT = (ENV_FILE, LOG_FILE, "agent.log.1", FILE, PID_FILE)
OF_CACHE = ("blobs", "models", "hub", "state", "tmp")
OF_COMMAND = ("runtime", "zipapp")


@dataclass(frozen=True)
class Plan:
    """What is there of an agent. Only what Parsyn itself has made is ever in it."""

    folder: Path
    cache: Path
    paths: tuple[Path, ...]
    image: runtime.Runtime | None


def plan(folder: Path, keep_cache: bool) -> Plan:
    """Look, remove nothing. With `keep_cache` downloaded models and unsent reports stay."""
    cache = runtime.cache_dir(folder)
    found = runtime.find(cache)
    names = OF_COMMAND if keep_cache else (*OF_COMMAND, *OF_CACHE)
    paths = [folder / name for name in OF_AGENT]
    paths += [cache / name for name in names]
    paths += _command()
    there = tuple(path for path in paths if path.exists() or path.is_symlink())
    return Plan(folder, cache, there, found if found.kind == "container" else None)


def _command() -> list[Path]:
    """The installed command, where this process runs from it: its wrapper says where that is."""
    library = Path(os.environ.get("PARSYN_LIBRARY", ""))
    if library.name != "parsyn" or not zipfile.is_zipfile(library / "parsyn.pyz"):
        return []
    scripts = [library.parent.parent / "bin" / name for name in ("parsyn", "parsyn-worker")]
    return [*(path for path in scripts if _is_ours(path)), library]


def _is_ours(path: Path) -> bool:
    try:
        return "installer" in path.read_text(encoding="utf-8")[:300]
    except (OSError, UnicodeDecodeError):
        return False


def carry_out(plan: Plan) -> None:
    """Stop the agent and remove what the plan names. Raises OSError where that is forbidden."""
    stop(plan.folder)
    if plan.image is not None:
        command = [plan.image.engine, "image", "rm", "--force", plan.image.image]
        subprocess.run(command, capture_output=True, check=False)
    for path in plan.paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for folder in (plan.folder, plan.cache):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
