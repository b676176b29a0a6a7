"""Making a runtime: `parsyn runtime install`. Nothing here touches a GPU driver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata, resources, util
from pathlib import Path

from parsyn import __version__
from parsyn.errors import ErrorCode, ParsynError
from parsyn_worker import probe
from parsyn_worker.runtime import Runtime, constraints, home, keep, lock_of, requirements

OWN = ("parsyn", "parsyn_worker", "parsyn_plugins")
ENGINES = ("docker", "podman")
ASK_SECONDS = 60
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """`python` names the one to use (or to build upon); `index` is a further package index."""

    cache: Path
    python: str | None = None
    extras: tuple[str, ...] = ()
    index: str | None = None
    base_image: str = "python:3.11-slim"


def install(kind: str, wanted: Wanted, say: Say) -> Runtime:
    """Make the runtime, or find that it is there; it becomes the one that is used.

    Raises ParsynError with what is missing and what to do.
    """
    if kind == "auto":
        engine = container_engine(say) if probe.default_device() != "cpu" else None
        kind = "container" if engine else "venv"
    made = {"container": _container, "venv": _venv, "existing": _existing}[kind](wanted, say)
    keep(wanted.cache, made)
    _sweep(home(wanted.cache), made)
    _sweep_zipapps()
    say(f"Runtime: {describe(made)}")
    return made


def describe(runtime: Runtime) -> str:
    if runtime.kind == "container":
        return f"container image {runtime.image} ({Path(runtime.engine).name})"
    if runtime.kind == "here":
        return f"this Python, {sys.executable}"
    return f"{runtime.kind}, {runtime.python}"


# --- an existing Python ----------------------------------------------------------------------


def _existing(wanted: Wanted, say: Say) -> Runtime:
    python = shutil.which(wanted.python or sys.executable)
    if python is None:
        raise _failed(f"There is no {wanted.python}.", "Name a Python with --python.")
    return _verified(Runtime("existing", python, str(_place_code(wanted.cache)), __version__))


def _verified(runtime: Runtime) -> Runtime:
    """The same, once its Python was seen to find everything that an agent imports."""
    names = _modules(requirements(()))
    script = (
        "import importlib.util as u, json, sys\n"
        "print(json.dumps([list(sys.version_info[:2]),"
        " [n for n in sys.argv[1:] if u.find_spec(n) is None]]))\n"
        "import parsyn_worker.main"
    )
    done = subprocess.run(
        [runtime.python, "-P", "-c", script, *names], env=runtime.environment(),
        capture_output=True, text=True, timeout=ASK_SECONDS, check=False,
    )  # fmt: skip
    try:
        version, missing = json.loads(done.stdout.splitlines()[0])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise _failed(f"{runtime.python} does not run ({last}).", "Name another.") from None
    if version < [3, 11]:
        raise _failed(
            f"{runtime.python} is Python {version[0]}.{version[1]}.", "Use 3.11 or newer."
        )
    if missing:
        pip = f"{runtime.python} -m pip install {' '.join(requirements(()))}"
        raise _failed(f"{runtime.python} lacks {', '.join(missing)}.", f"Install it: {pip}")
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1]
        raise _failed(f"The agent cannot be imported by {runtime.python} ({last}).", "Use another.")
    return runtime


def _modules(names: Sequence[str]) -> list[str]:
    """Import names of distributions."""
    known = {"nvidia-ml-py": "pynvml", "zstandard": "zstandard"}
    return [known.get(name, name.replace("-", "_").lower()) for name in names]


# --- a managed environment -------------------------------------------------------------------


def _venv(wanted: Wanted, say: Say) -> Runtime:
    python = shutil.which(wanted.python or sys.executable)
    if python is None:
        raise _failed(f"There is no {wanted.python}.", "Name a Python with --python.")
    extras = _with_cuda(wanted.extras)
    lock = lock_of(_version_of(python), extras)
    folder = home(wanted.cache) / f"venv-{lock}"
    runtime = Runtime(
        "venv", str(folder / "bin" / "python"), str(_place_code(wanted.cache)), __version__, lock
    )
    if (folder / "complete").exists():
        say(f"The environment is up to date: {folder}")
        return _verified(runtime)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    say(f"Making the environment {folder} (several gigabytes with CUDA; this takes a while).")
    _call([python, "-m", "venv", "--without-pip", str(folder)], "The environment was not made")
    _pip(runtime.python, requirements(extras), wanted.index)
    _verified(runtime)
    (folder / "complete").touch()
    return runtime


def _with_cuda(extras: tuple[str, ...]) -> tuple[str, ...]:
    """bitsandbytes helps on NVIDIA GPUs only."""
    return (*extras, "cuda") if probe.default_device() != "cpu" else extras


def _version_of(python: str) -> str:
    done = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True, text=True, timeout=ASK_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise _failed(f"{python} does not run.", "Name another with --python.")
    return done.stdout.strip()


def _pip(python: str, names: Sequence[str], index: str | None) -> None:
    """Install pinned versions into another Python's environment with the pip that we carry."""
    spec = util.find_spec("pip")
    if spec is None or spec.origin is None:
        raise _failed("pip is not installed here.", "Install pip, or use --kind existing.")
    runner = Path(spec.origin).with_name("__pip-runner__.py")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write(constraints())
        pins.flush()
        command = [
            python, str(runner), "install", "--no-input", "--disable-pip-version-check",
            "--progress-bar", "off", "--quiet", "-c", pins.name,
            *(["--extra-index-url", index] if index else []), *names,
        ]  # fmt: skip
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        _call(command, "The packages were not installed", env)


def _call(command: Sequence[str], failed: str, env: dict[str, str] | None = None) -> None:
    """Run with its output shown. Raises ParsynError with the last line of what it said."""
    done = subprocess.run(command, env=env, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise _failed(f"{failed}: {last}.", "Repair that and run it again.")


# --- a container -----------------------------------------------------------------------------


def container_engine(say: Say) -> str | None:
    """Docker or Podman, if it can be used here and has NVIDIA's toolkit."""
    for name in ENGINES:
        engine = shutil.which(name)
        if engine is None:
            continue
        why = _unusable(name, engine)
        if why is None:
            return engine
        say(f"{name} is not used: {why}")
    return None


def _unusable(name: str, engine: str) -> str | None:
    try:
        done = subprocess.run(
            [engine, "info", "--format", "{{json .}}"],
            capture_output=True, text=True, timeout=ASK_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it does not answer."
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it does not work."])[-1]
    toolkit = shutil.which("nvidia-ctk") or shutil.which("nvidia-container-cli")
    specs = any(Path(folder, "nvidia.yaml").exists() for folder in ("/etc/cdi", "/var/run/cdi"))
    if name == "docker" and ("nvidia" in done.stdout or specs):
        return None
    if name == "podman" and specs:
        return None
    if toolkit:
        return "the NVIDIA Container Toolkit is installed, but not configured for it (nvidia-ctk)."
    return "the NVIDIA Container Toolkit is not installed."


def _container(wanted: Wanted, say: Say) -> Runtime:
    engine = container_engine(say)
    if engine is None:
        raise _failed(
            "Neither Docker nor Podman can give a container the GPU.",
            "Install one with the NVIDIA Container Toolkit, or use --kind venv.",
        )
    extras = _with_cuda(wanted.extras)
    lock = lock_of("container", extras)
    image = f"parsyn-worker:{__version__}-{lock}"
    runtime = Runtime(
        "container", version=__version__, lock=lock, engine=engine, image=image,
    )  # fmt: skip
    known = subprocess.run([engine, "image", "inspect", image], capture_output=True, check=False)
    if known.returncode == 0:
        say(f"The image is there: {image}")
        return runtime
    with tempfile.TemporaryDirectory(prefix="parsyn-image-") as folder:
        context = Path(folder)
        (context / "constraints.txt").write_text(constraints())
        (context / "requirements.txt").write_text("\n".join(requirements(extras)) + "\n")
        _copy_code(context / "code")
        recipe = resources.files("parsyn_worker").joinpath("Containerfile").read_text()
        (context / "Containerfile").write_text(recipe)
        say(f"Building the image {image} (this takes a while).")
        arguments = [f"BASE={wanted.base_image}", f"INDEX={wanted.index or ''}"]
        _call(
            [engine, "build", "--tag", image, "--file", str(context / "Containerfile"),
             *(part for value in arguments for part in ("--build-arg", value)), folder],
            "The image was not built",
        )  # fmt: skip
    return runtime


# --- our own code ----------------------------------------------------------------------------


def _place_code(cache: Path) -> Path:
    """A copy of Parsyn's own packages, which are pure Python, in a folder of their version."""
    with tempfile.TemporaryDirectory(dir=_made(home(cache)), prefix="code-new-") as folder:
        draft = Path(folder) / "code"
        digest = _copy_code(draft)
        target = home(cache) / f"code-{__version__}-{digest}"
        if not target.exists():
            draft.rename(target)
    return target


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def _copy_code(target: Path) -> str:
    """Returns a digest of what was copied."""
    import hashlib

    digest = hashlib.sha256()
    for name in OWN:
        spec = util.find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations
        source = Path(next(iter(spec.submodule_search_locations)))
        ignored = shutil.ignore_patterns("__pycache__", "static")
        shutil.copytree(source, target / name, ignore=ignored)
    distribution = metadata.distribution("parsyn")
    info = target / f"parsyn-{__version__}.dist-info"
    info.mkdir()
    for file in ("METADATA", "entry_points.txt"):
        (info / file).write_text(distribution.read_text(file) or "")
    for path in sorted(target.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(target)).encode() + path.read_bytes())
    return digest.hexdigest()[:10]


def _sweep(folder: Path, runtime: Runtime) -> None:
    """Remove environments and code of older versions, save the last: an agent may still run it."""
    for pattern, current in (("venv-*", runtime.python), ("code-*", runtime.code)):
        others = [path for path in folder.glob(pattern) if not current.startswith(str(path))]
        others.sort(key=lambda path: path.stat().st_mtime)
        for path in others[:-1]:
            shutil.rmtree(path, ignore_errors=True)


def _sweep_zipapps() -> None:
    """Remove what zipapps of older versions were unpacked to, save the last."""
    own = Path(__file__).parents[2]
    if not own.name.startswith("parsyn.pyz_"):
        return
    others = [path for path in own.parent.glob("parsyn.pyz_*") if path.is_dir() and path != own]
    others.sort(key=lambda path: path.stat().st_mtime)
    for path in others[:-1]:
        shutil.rmtree(path, ignore_errors=True)


def _failed(what: str, todo: str) -> ParsynError:
    return ParsynError(ErrorCode.CONFIG, f"{what} {todo}")
