"""The installer script itself: its form, its options, and what it says is missing."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.conftest import BARE_PATH, INSTALLER, Machine

SAID_BY = "parsyn: "


def filled(**changes: str) -> str:
    """The script as a hub of this machine hands it out."""
    values = {
        "HUB_URL": "https://hub.example",
        "VERSION": "0.1.0",
        "PYTHON": "{}.{}".format(*sys.version_info[:2]),
        "SYSTEM": platform.system(),
        "MACHINE": platform.machine(),
        **changes,
    }
    text = INSTALLER.read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def test_it_is_sound_posix_shell() -> None:
    for shell in ("sh", "dash", "bash"):
        if shutil.which(shell):
            subprocess.run([shell, "-n", str(INSTALLER)], check=True)
    tool = shutil.which("shellcheck")
    assert tool, "apt-get install shellcheck"
    done = subprocess.run(
        [tool, "--shell=sh", "--severity=style", str(INSTALLER)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_half_a_script_does_nothing(machine: Machine) -> None:
    text = filled()
    for part in (0.3, 0.6, 0.95):
        machine.install(text[: int(len(text) * part)])
        assert list(machine.home.iterdir()) == []


def test_a_dry_run_says_everything_and_changes_nothing(machine: Machine) -> None:
    index = "https://packages.example/cpu"
    done = machine.install(filled(), "--dry-run", "--runtime", "venv", "--index", index)
    assert done.returncode == 0, done.stderr
    for line in (
        f"would run: mkdir -p {machine.prefix}/lib/parsyn {machine.prefix}/bin",
        f"would fetch: https://hub.example/install/parsyn.pyz to {machine.prefix}/lib/parsyn",
        f"would run: {machine.parsyn} runtime install --kind venv --index {index}",
        f"{machine.parsyn} init --url https://hub.example",
        "Nothing was changed (--dry-run).",
    ):
        assert line in done.stdout
    assert list(machine.home.iterdir()) == []


def test_another_address_and_another_folder(machine: Machine) -> None:
    options = ("--dry-run", "--url", "http://10.0.0.7:8000/parsyn/", "--prefix", "tools")
    done = machine.install(filled(), *options)
    assert f"http://10.0.0.7:8000/parsyn/install/parsyn.pyz to {machine.home}/tools/" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nonsense"], "There is no option --nonsense. --help lists them."),
        (["--url"], "--url needs a value."),
        (["--url", "hub.example"], "--url must begin with https:// or http://"),
        (["--url", "http://hub/'; id; '"], "--url holds what belongs into no address"),
        (["--runtime", "gpu"], "--runtime is auto, container, venv, existing or none"),
        (["--python", "/no/such/python"], "There is no /no/such/python."),
        (["--python", "/bin/true/no"], "There is no /bin/true/no."),
        (["--python", "/bin/false"], "/bin/false is not Python 3.11 or newer."),
        (["--prefix", "/tmp/it's"], "A path may not hold a quote"),
    ],
)
def test_wrong_options_are_one_line(machine: Machine, options: list[str], words: str) -> None:
    done = machine.install(filled(), *options)
    assert done.returncode == 1
    assert done.stderr.startswith(SAID_BY)
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(machine.home.iterdir()) == []


def test_help_is_printed_and_nothing_done(machine: Machine) -> None:
    done = machine.install(filled(), "--help")
    assert done.returncode == 0
    assert "curl -fsSL https://hub.example/install/worker | sh" in done.stdout
    assert list(machine.home.iterdir()) == []


def test_another_machine_or_python_than_the_hubs(machine: Machine) -> None:
    for change in ({"MACHINE": "riscv64"}, {"PYTHON": "3.99"}):
        done = machine.install(filled(**change), "--dry-run")
        assert done.returncode == 0, done.stderr
        assert "Nothing was changed" in done.stdout


def test_a_machine_without_a_python(machine: Machine) -> None:
    tools = tools_of(machine, "cat", "chmod", "id", "mkdir", "mv", "uname")
    done = machine.run("/bin/sh", "-s", stdin=filled(), path=str(tools))
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed and was not found." in done.stderr
    assert "nstall it" in done.stderr


def tools_of(machine: Machine, *names: str) -> Path:
    tools = machine.home / "tools"
    tools.mkdir()
    for name in names:
        (tools / name).symlink_to(shutil.which(name, path=BARE_PATH) or name)
    return tools


def test_a_machine_with_hardly_any_command(machine: Machine) -> None:
    tools = tools_of(machine, "cat", "chmod", "id", "mkdir", "mv", "uname")
    (tools / "python3").symlink_to("/usr/bin/python3")
    done = machine.run("/bin/sh", "-s", "--", "--dry-run", stdin=filled(), path=str(tools))
    assert done.returncode == 0, done.stderr


def test_a_hub_that_cannot_be_reached(machine: Machine) -> None:
    done = machine.install(filled(), "--url", "http://127.0.0.1:9", "--runtime", "none")
    assert done.returncode == 1
    assert "http://127.0.0.1:9/install/parsyn.pyz: cannot be fetched" in done.stderr
    assert "Check the address and this machine's network." in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(machine.parsyn).exists()


def test_an_address_that_is_no_hub(machine: Machine, no_hub: str) -> None:
    done = machine.install(filled(), "--url", no_hub, "--runtime", "none")
    assert done.returncode == 1
    assert "answers, but not as a Parsyn hub does. Check the address." in done.stderr
    assert not (machine.prefix / "lib" / "parsyn" / "parsyn.pyz").exists()


@pytest.fixture
def no_hub() -> str:
    """Some web server that answers everything with a page."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<h1>It works</h1>")

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
