"""What runs the work: made, found, refused when it does not fit, and swept up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parsyn import __version__
from parsyn.errors import ParsynError
from parsyn_worker import probe, runtime, runtime_install
from parsyn_worker.runtime import Runtime
from parsyn_worker.runtime_install import Wanted, install
from tests.meta.tree import ROOT

COMMAND = [sys.executable, "-m", "parsyn.cli.main"]


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, **env}, check=False,
    )  # fmt: skip


def test_without_one_this_python_does_the_work(tmp_path: Path) -> None:
    found = runtime.usable(tmp_path)
    command = found.command("parsyn_worker.main", "start", folder=tmp_path, cache=tmp_path)
    assert command == [sys.executable, "-P", "-m", "parsyn_worker.main", "start"]
    assert found.environment({"A": "b"}) == {"A": "b"}
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "runtime.json").write_text("{damaged")
    assert runtime.find(tmp_path) == found


def test_an_existing_python_gets_our_code_first(tmp_path: Path) -> None:
    cache = str(tmp_path)
    done = run("runtime", "install", "--kind", "existing", CACHE_DIR=cache)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Runtime: existing, {sys.executable}\n"
    shown = json.loads(run("runtime", "show", "--json", CACHE_DIR=cache).stdout)
    assert (shown["kind"], shown["version"]) == ("existing", __version__)
    found = runtime.usable(tmp_path)
    packages = "/opt/zipapp/site-packages"
    env = found.environment({**os.environ, "PYTHONPATH": f"{packages}{os.pathsep}/mine"})
    assert env["PYTHONPATH"].split(os.pathsep) == [found.code, "/mine"]
    where = "import parsyn, parsyn_worker.main; print(parsyn.__file__)"
    said = subprocess.run(
        [found.python, "-P", "-c", where], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith(found.code)


def test_plugins_are_found_through_the_copied_code(tmp_path: Path) -> None:
    install("existing", Wanted(tmp_path), print)
    found = runtime.usable(tmp_path)
    code = "from parsyn.plugin.manager import Plugins; print(sorted(Plugins().trainers))"
    said = subprocess.run(
        [found.python, "-P", "-c", code], env=found.environment(), capture_output=True, text=True
    )
    assert "sft" in said.stdout, said.stderr


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ("/no/such/python", "There is no /no/such/python."),
        ("/bin/true", "/bin/true does not run"),
    ],
)
def test_what_is_no_python_is_refused(tmp_path: Path, python: str, words: str) -> None:
    with pytest.raises(ParsynError, match=words):
        install("existing", Wanted(tmp_path, python), print)
    assert runtime.find(tmp_path).kind == "here"


def test_a_python_without_packages_is_told_which(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = run("runtime", "install", "--kind", "existing", "--python", f"{bare}/bin/python",
               CACHE_DIR=str(tmp_path))  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "lacks" in done.stderr
    assert "torch" in done.stderr
    assert f"{bare}/bin/python -m pip install" in done.stderr


def test_one_of_another_version_is_not_used(tmp_path: Path) -> None:
    runtime.keep(tmp_path, Runtime("existing", sys.executable, "/code", "0.0.1"))
    with pytest.raises(ParsynError, match=r"of Parsyn 0\.0\.1.*parsyn runtime install"):
        runtime.usable(tmp_path)
    runtime.keep(tmp_path, Runtime("venv", "/gone/python", "/code", __version__))
    with pytest.raises(ParsynError, match="/gone/python is gone"):
        runtime.usable(tmp_path)


def test_the_last_code_stays_for_an_agent_that_runs(tmp_path: Path) -> None:
    for n in range(4):
        old = tmp_path / "runtime" / f"code-0.0.{n}-x"
        old.mkdir(parents=True)
        os.utime(old, (n, n))
    made = install("existing", Wanted(tmp_path), print)
    left = {path.name for path in (tmp_path / "runtime").glob("code-*")}
    assert left == {"code-0.0.3-x", Path(made.code).name}


def test_what_is_required_is_pinned() -> None:
    pins = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in runtime.constraints().splitlines()
        if "==" in line
    }
    wanted = {name.lower().replace("_", "-") for name in runtime.requirements(("gguf", "cuda"))}
    assert wanted - pins == set()
    assert {"torch", "transformers", "peft", "websockets", "pydantic"} <= wanted
    assert not wanted & runtime.HUB_ONLY
    committed = (ROOT / "requirements" / "constraints.txt").read_text()
    assert runtime.constraints() == committed


def test_another_set_of_packages_has_another_name() -> None:
    names = {
        runtime.lock_of(version, extras)
        for version in ("3.11", "3.12")
        for extras in ((), ("gguf",), ("gguf", "cuda"))
    }
    assert len(names) == 6


# --- containers: no engine runs in tests, one that writes down what it is asked stands in ---------


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that has the toolkit, builds whatever it is given, and knows what it built."""
    tools = tmp_path / "tools"
    tools.mkdir()
    docker = tools / "docker"
    docker.write_text(
        f"""#!/bin/sh
printf '%s\\n' "$*" >>{tmp_path}/asked
case $1 in
  info) echo '{{"Runtimes":{{"nvidia":{{}}}}}}' ;;
  image) test -e {tmp_path}/built ;;
  build) cp -r "$(eval echo \\${{$#}})" {tmp_path}/built ;;
esac
"""
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return docker


def asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "asked").read_text().splitlines()


def test_an_image_is_built_once_of_the_pins_and_our_code(tmp_path: Path, engine: Path) -> None:
    cache = tmp_path / "cache"
    made = install("container", Wanted(cache), print)
    again = install("container", Wanted(cache), print)
    assert made == again
    assert sum(line.startswith("build") for line in asked(tmp_path)) == 1
    assert made.image.startswith(f"parsyn-worker:{__version__}-")
    built = tmp_path / "built"
    assert (built / "constraints.txt").read_text() == runtime.constraints()
    assert "torch" in (built / "requirements.txt").read_text().split()
    assert (built / "code" / "parsyn_worker" / "main.py").exists()
    assert (built / "Containerfile").read_text().startswith("# The image")


def test_without_an_engine_a_container_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ParsynError, match=r"Neither Docker nor Podman.*--kind venv"):
        install("container", Wanted(tmp_path / "cache"), print)
    assert runtime.find(tmp_path / "cache").kind == "here"


def test_an_agent_in_a_container(
    tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, folder = tmp_path / "cache", tmp_path / "agent"
    monkeypatch.setenv("WORKER_API_KEY", "wkr_secret")
    found = install("container", Wanted(cache), print)
    command = found.command("parsyn_worker.main", "start", folder=folder, cache=cache)
    text = " ".join(command)
    assert command[0] == str(engine)
    for part in (
        f"--volume {folder}:{folder}",
        f"--volume {cache}:{cache}",
        f"--env PARSYN_WORKER_DIR={folder}",
        f"--env CACHE_DIR={cache}",
        "--env WORKER_API_KEY",
        "--gpus all",
        f"--user {os.getuid()}:{os.getgid()}",
        f"--name {runtime.container_name(folder)}",
    ):
        assert part in text
    assert "secret" not in text
    assert text.endswith(f"{found.image} python -P -m parsyn_worker.main start")
    without = found.command("x", folder=folder, cache=cache, gpu=False)
    assert "--gpus" not in without


def test_auto_takes_what_the_machine_can(
    tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    assert runtime_install.container_engine(said.append) == str(engine)
    engine.write_text("#!/bin/sh\necho 'permission denied' >&2; exit 1\n")
    assert runtime_install.container_engine(said.append) is None
    assert said[-1] == "docker is not used: permission denied"
    engine.write_text("#!/bin/sh\necho '{}'\n")
    assert runtime_install.container_engine(said.append) is None
    assert "NVIDIA Container Toolkit is not installed" in said[-1]
    kinds = []
    for device in ("cpu", "cuda:0"):
        monkeypatch.setattr(probe, "default_device", lambda device=device: device)
        monkeypatch.setattr(runtime_install, "_venv", lambda *_: kinds.append("venv") or Runtime())
        install("auto", Wanted(tmp_path / "cache"), said.append)
    engine.write_text('#!/bin/sh\necho \'{"Runtimes":{"nvidia":{}}}\'\n')
    monkeypatch.setattr(
        runtime_install, "_container", lambda *_: kinds.append("container") or Runtime()
    )
    install("auto", Wanted(tmp_path / "cache"), said.append)
    assert kinds == ["venv", "venv", "container"]


def test_the_pid_of_an_agent_in_a_container_is_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime.agent_pid() == os.getpid()
    monkeypatch.setenv(runtime.PID_VARIABLE, "4711")
    assert runtime.agent_pid() == 4711


# --- a managed environment, of packages that lie on this disk -----------------------------------


def test_an_environment_is_made_once_with_the_pip_that_we_carry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pip would fetch is another test's matter: here it installs one package of a folder."""
    wheel = small_wheel(tmp_path / "wheels")
    cache = tmp_path / "cache"
    monkeypatch.setattr(runtime_install, "requirements", lambda _: [str(wheel)])
    monkeypatch.setattr(runtime_install, "_verified", lambda made: made)
    made = install("venv", Wanted(cache), print)
    said = subprocess.run(
        [made.python, "-c", "import small; print(small.__file__)"], env=made.environment(),
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.startswith(str(Path(made.python).parents[1]))
    shutil.rmtree(wheel.parent)
    assert install("venv", Wanted(cache), print) == made


def test_an_environment_that_was_not_finished_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setattr(runtime_install, "requirements", lambda _: [str(tmp_path / "no.whl")])
    with pytest.raises(ParsynError, match="The packages were not installed") as caught:
        install("venv", Wanted(cache), print)
    assert len(caught.value.detail.splitlines()) == 1
    assert runtime.find(cache).kind == "here"
    assert not list(cache.glob("runtime/venv-*/complete"))


def small_wheel(folder: Path) -> Path:
    import zipfile

    folder.mkdir()
    path = folder / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("small.py", "")
        info = "small-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
