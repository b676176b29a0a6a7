"""`parsyn init` at a terminal and without one: two questions, and the key is never shown."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from parsyn.cli import origin
from parsyn.services import zipapp
from parsyn_worker.config import read_env

COMMAND = [sys.executable, "-m", "parsyn.cli.main", "init"]
KEY = "enroll_shown_to_nobody"


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PARSYN_INSTALLED_FROM": "",
        "PARSYN_WORKER_DIR": str(folder),
        "CACHE_DIR": "",
        "TERM": "dumb",
    }


class Terminal:
    """A process at a pseudo-terminal."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.seen = ""
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)

    def until(self, words: str) -> None:
        deadline = time.monotonic() + 30
        while words not in self.seen:
            assert time.monotonic() < deadline, self.seen
            self._read()

    def _read(self) -> None:
        if select.select([self.master], [], [], 0.2)[0]:
            try:
                self.seen += os.read(self.master, 4096).decode()
            except OSError:
                assert self.process.wait(10) is not None

    def type(self, text: str) -> None:
        os.write(self.master, f"{text}\n".encode())

    def end(self) -> int:
        code = self.process.wait(30)
        self._read()
        os.close(self.master)
        return code


def test_two_questions_and_a_key_that_is_not_shown(tmp_path: Path) -> None:
    terminal = Terminal(COMMAND, environment(tmp_path))
    terminal.until("The hub's address (for example https://hub.example.org): ")
    terminal.type("hub.example")
    terminal.until("The enrolment key (it is not shown): ")
    terminal.type(KEY)
    terminal.until("Start the agent with `parsyn start`.")
    assert terminal.end() == 0
    assert KEY not in terminal.seen
    found = read_env(tmp_path / ".env")
    assert found["PLATFORM_URL"] == "wss://hub.example/ws/worker"
    assert found["WORKER_ENROLLMENT_KEY"] == KEY


def run(folder: Path, *options: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *options], input=stdin, capture_output=True, text=True, timeout=60,
        env=environment(folder), check=False,
    )  # fmt: skip


def test_no_question_at_all(tmp_path: Path) -> None:
    options = ("--url", "https://hub", "--key-stdin", "--non-interactive", "--device", "cpu")
    done = run(tmp_path, *options, "--name", "attic", stdin=KEY)
    assert done.returncode == 0, done.stderr
    assert read_env(tmp_path / ".env")["WORKER_NAME"] == "attic"
    assert KEY not in done.stdout + done.stderr
    again = run(tmp_path, *options, stdin=KEY)
    assert (again.returncode, "Use --force" in again.stderr) == (1, True)
    forced = run(tmp_path, *options, "--force", stdin="wkr_by_hand")
    assert forced.returncode == 0
    found = read_env(tmp_path / ".env")
    assert found["WORKER_API_KEY"] == "wkr_by_hand"
    assert not {"WORKER_ENROLLMENT_KEY", "WORKER_NAME"} & set(found)


def test_a_command_that_knows_its_hub(tmp_path: Path) -> None:
    env = {**environment(tmp_path), "PARSYN_INSTALLED_FROM": "https://hub.example"}
    terminal = Terminal(COMMAND, env)
    terminal.until("The hub's address [https://hub.example]: ")
    terminal.type("")
    terminal.until("The enrolment key (it is not shown): ")
    terminal.type(KEY)
    assert terminal.end() == 0
    assert read_env(tmp_path / ".env")["PLATFORM_URL"] == "wss://hub.example/ws/worker"


def test_a_zipapp_says_which_hub_it_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(origin.VARIABLE, raising=False)
    path = tmp_path / "parsyn.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__main__.py", "")
    monkeypatch.setattr("sys.argv", [str(path)])
    assert origin.hub_of_origin() is None
    told = path.read_bytes()[: -zipapp.NO_COMMENT] + zipapp.comment("https://hub.example")
    path.write_bytes(told)
    assert origin.hub_of_origin() == "https://hub.example"
    assert zipfile.is_zipfile(path)


def test_what_is_missing_is_wrong_usage(tmp_path: Path) -> None:
    for options, words in (
        (("--non-interactive",), "--non-interactive needs --url"),
        (("--non-interactive", "--url", "https://hub"), "--non-interactive needs --key-stdin"),
    ):
        done = run(tmp_path, *options)
        assert (done.returncode, words in done.stderr) == (2, True)
    empty = run(tmp_path, "--url", "https://hub", "--key-stdin", "--non-interactive", stdin="\n")
    assert empty.returncode == 2
    assert not (tmp_path / ".env").exists()
