"""What `contrib/` has for agents and hubs says only what exists: commands, options, variables."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from jinja2 import Environment, StrictUndefined

from parsyn import config
from parsyn.cli.main import cli
from parsyn_worker.config import DIR_VARIABLE, load_config
from parsyn_worker.config import SETTINGS as AGENT_SETTINGS
from tests.meta.tree import ROOT, text_of

CONTRIB = ROOT / "contrib"
UNITS = sorted((CONTRIB / "systemd").glob("*.service"))
ROLE = CONTRIB / "ansible" / "roles" / "parsyn_worker"
AGENT = {setting.name for setting in AGENT_SETTINGS} | {DIR_VARIABLE}
HUB = {setting.variable for setting in config.SETTINGS} | {"PARSYN_DATA", "PARSYN_CONFIG"}
OTHERS = {"SHIV_ROOT", "PYTHONUNBUFFERED", "PATH", "HOME"}
KNOWN = AGENT | HUB | OTHERS


def sections(unit: Path) -> list[tuple[str, str]]:
    lines = (line.partition("=") for line in unit.read_text().splitlines() if "=" in line)
    return [(key.strip(), value.strip()) for key, _, value in lines if not key.startswith("#")]


def values(unit: Path, key: str) -> list[str]:
    return [value for name, value in sections(unit) if name == key]


def check_command(words: list[str]) -> None:
    """A `parsyn …` or `parsyn-worker …` that click or argparse would take."""
    program, rest = Path(words[0]).name, words[1:]
    if program == "parsyn-worker":
        assert rest[:1] == ["start"]
        return
    command: click.Command = cli
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), rest.pop(0))  # type: ignore[assignment]
        assert command is not None, words
    options = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
    given = {word.partition("=")[0] for word in rest if word.startswith("-")}
    assert given <= options, words


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_runs_commands_that_exist_with_variables_that_count(unit: Path) -> None:
    for line in values(unit, "ExecStart"):
        words = shlex.split(line)
        if words[0] == "/bin/sh":
            words = shlex.split(words[2].removeprefix("exec ").replace("$(", "").replace(")", ""))
        check_command(words)
    names = {part.partition("=")[0] for part in values(unit, "Environment")}
    assert names <= KNOWN
    assert values(unit, "User"), "nothing here needs root"


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_is_one_for_systemd(unit: Path, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd is not installed")
    text = re.sub(r"^(ExecStart=)\S+", r"\1/bin/true", unit.read_text(), flags=re.MULTILINE)
    copy = tmp_path / unit.name.replace("@.", "@0.")
    copy.write_text(re.sub(r"^User=.*", "User=daemon", text, flags=re.MULTILINE))
    done = subprocess.run([tool, "verify", str(copy)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if unit.stem.strip("@") in line]
    assert said == []


def test_each_agent_of_a_machine_has_a_folder_and_a_device_of_its_own() -> None:
    unit = CONTRIB / "systemd" / "parsyn-worker@.service"
    environment = dict(part.split("=", 1) for part in values(unit, "Environment"))
    assert "%i" in environment["PARSYN_WORKER_DIR"]
    assert environment["GPU_DEVICE"] == "cuda:%i"
    folders = " ".join(values(unit, "StateDirectory"))
    assert environment["PARSYN_WORKER_DIR"].removeprefix("/var/lib/") in folders
    filled = {name: value.replace("%i", "1") for name, value in environment.items()}
    told = {"PLATFORM_URL": "https://hub", "WORKER_ENROLLMENT_KEY": "enroll_x"}
    loaded = load_config(Path(filled["PARSYN_WORKER_DIR"]), {**filled, **told})
    assert loaded.device == "cuda:1"


def test_an_own_key_wins_over_the_enrolment_key_that_all_are_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("WORKER_API_KEY=wkr_own\n")
    told = {"PLATFORM_URL": "https://hub", "WORKER_ENROLLMENT_KEY": "enroll_x"}
    assert load_config(tmp_path, told).key == "wkr_own"


def test_cloud_init() -> None:
    text = (CONTRIB / "cloud-init" / "worker.yaml").read_text()
    assert text.startswith("#cloud-config\n")
    found = yaml.safe_load(text)
    files = {item["path"]: item for item in found["write_files"]}
    settings = files["/etc/parsyn/worker.env"]
    assert settings["permissions"] == "0600"
    assert {line.partition("=")[0] for line in settings["content"].split()} <= AGENT
    unit = files["/etc/systemd/system/parsyn-worker.service"]["content"]
    assert unit == (CONTRIB / "systemd" / "parsyn-worker.service").read_text()
    for line in found["runcmd"]:
        subprocess.run(["sh", "-n", "-c", line], check=True)
    installer = next(line for line in found["runcmd"] if "sh /run/parsyn-install" in line)
    assert_installer_takes(shlex.split(installer.partition("parsyn-install")[2]))


def assert_installer_takes(options: list[str]) -> None:
    script = text_of(Path("parsyn/hub/install_worker.sh"))
    for option in options:
        if option.startswith("--"):
            assert f"{option}) " in script


def test_compose() -> None:
    file = CONTRIB / "compose" / "compose.yaml"
    found = yaml.safe_load(file.read_text())
    for name, service in found["services"].items():
        build = service["build"]
        context = (file.parent / build["context"]).resolve()
        assert context == ROOT
        assert (context / build["dockerfile"]).exists()
        assert set(service["environment"]) <= (AGENT if name == "worker" else HUB)
        for volume in service["volumes"]:
            source, target = volume.split(":")
            assert source in found["volumes"]
            assert f'"{target}"' in (context / build["dockerfile"]).read_text()
    defaults = {
        name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", value)
        for name, value in found["services"]["worker"]["environment"].items()
    }
    load_config(Path("/nowhere"), {**defaults, "WORKER_ENROLLMENT_KEY": "enroll_x"})


@pytest.mark.parametrize(
    "path",
    [
        *sorted((CONTRIB / "container").iterdir()),
        ROOT / "worker" / "parsyn_worker" / "Containerfile",
    ],
    ids=lambda path: path.name,
)
def test_a_containerfile_copies_what_is_there_and_sets_what_counts(path: Path) -> None:
    text = re.sub(r"\\\n\s*", "", path.read_text())
    lines = [line.split(None, 1) for line in text.splitlines() if line and line[0] not in "# "]
    assert lines[0][0] == "ARG"
    words = {"ARG", "FROM", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in lines} <= words
    built = {"dist/*.whl", "constraints.txt", "requirements.txt", "code"}
    for word, rest in lines:
        if word == "COPY":
            for source in rest.split()[:-1]:
                assert source in built or (ROOT / source).exists(), source
        elif word == "ENV":
            names = {part.partition("=")[0] for part in rest.split()}
            assert names <= KNOWN | {"PYTHONPATH"}
        elif word == "RUN":
            subprocess.run(["sh", "-n", "-c", rest], check=True)


def test_the_role_uses_only_variables_that_it_has() -> None:
    defaults: dict[str, Any] = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    tasks = yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())
    handlers = yaml.safe_load((ROLE / "handlers" / "main.yml").read_text())
    made = {"parsyn_worker_units", "parsyn_installed"}
    used = set(re.findall(r"\bparsyn_\w+\b", (ROLE / "tasks" / "main.yml").read_text()))
    assert used - {"parsyn_worker"} <= set(defaults) | made
    names = {handler["name"] for handler in handlers}
    for task in tasks:
        modules = [key for key in task if "." in key]
        assert len(modules) == 1, task["name"]
        assert modules[0].startswith("ansible.builtin.")
        assert task.get("notify") in {None, *names}
    play = yaml.safe_load((CONTRIB / "ansible" / "worker.yml").read_text())
    assert play[0]["roles"][0]["role"] == ROLE.name


def test_what_the_role_writes_is_what_an_agent_reads(tmp_path: Path) -> None:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    template = Environment(undefined=StrictUndefined, trim_blocks=True).from_string(
        (ROLE / "templates" / "worker.env.j2").read_text()
    )
    told = {"parsyn_hub_url": "https://hub.example", "parsyn_enrollment_key": "enroll_x",
            "parsyn_worker_environment": {"HF_TOKEN": "hf_x", "MAX_BATCH_SIZE": 8}}  # fmt: skip
    (tmp_path / ".env").write_text(template.render({**defaults, **told}))
    loaded = load_config(tmp_path, {})
    assert (loaded.hub.host, loaded.key, loaded.max_batch_size) == ("hub.example", "enroll_x", 8)


def test_the_foreground_agent_takes_what_the_units_give(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "parsyn_worker.main", "start", "--dir", str(tmp_path)],
        capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("PLATFORM_URL is not set.")
