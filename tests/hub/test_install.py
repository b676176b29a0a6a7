"""`/install/…`: the script with this hub's own address, and the command as one file."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from parsyn.config import Settings
from parsyn.hub import api_install
from parsyn.services import zipapp
from tests.hub.conftest import Person


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({"Host": "hub.example.org"}, "http://hub.example.org"),
        ({"Host": "10.0.0.7:8000"}, "http://10.0.0.7:8000"),
        ({"Host": "[fd00::1]:8000"}, "http://[fd00::1]:8000"),
        ({"Host": "hub.example.org", "X-Forwarded-Proto": "https"}, "https://hub.example.org"),
    ],
)
async def test_the_script_names_the_hub_as_it_was_asked(
    anonymous: Person, headers: dict[str, str], address: str
) -> None:
    answer = await anonymous.get("/install/worker", headers=headers)
    assert answer.status == 200
    text = answer.raw.decode()
    assert text.startswith("#!/bin/sh\n")
    quoted = address if "[" not in address else f"'{address}'"
    assert f"\nHUB_URL={quoted}\n" in text
    assert "@" not in text.split("main() {")[0].replace('"$@"', "")
    assert answer.headers["Cache-Control"] == "no-store"


async def test_the_address_of_the_settings_wins(
    anonymous: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = anonymous.context.settings
    values = {**old.values, "hub.url": "https://parsyn.example.org/"}
    monkeypatch.setattr(anonymous.context, "settings", Settings(old.data_dir, values))
    answer = await anonymous.get("/install/worker", headers={"Host": "evil.example"})
    assert "\nHUB_URL=https://parsyn.example.org\n" in answer.raw.decode()


@pytest.mark.parametrize(
    "host",
    [
        "x'; touch /tmp/gotcha; '",
        "$(id)",
        "`id`",
        "a b",
        'a"b',
        "hub.example/../..",
        "a;b",
        "",
        "-rf",
        "user@hub",
    ],
)
async def test_a_hostile_host_gets_no_script(anonymous: Person, host: str) -> None:
    answer = await anonymous.get("/install/worker", headers={"Host": host})
    assert answer.status == 400
    assert "Set hub.url" in answer.body["detail"]
    assert "#!/bin/sh" not in answer.raw.decode()


async def test_the_command_is_made_at_the_first_request(anonymous: Person) -> None:
    first = await anonymous.get("/install/parsyn.pyz")
    assert (first.status, first.code) == (503, "unavailable")
    assert int(first.headers["Retry-After"]) > 0
    assert "making the zipapp" in first.body["detail"]
    async with asyncio.timeout(120):
        while (answer := await anonymous.get("/install/parsyn.pyz")).status == 503:
            await asyncio.sleep(0.2)
    assert answer.status == 200
    digest = hashlib.sha256(answer.raw).hexdigest()
    assert answer.headers["ETag"] == f'"{digest}"'
    assert int(answer.headers["Content-Length"]) == len(answer.raw)
    archive = zipfile.ZipFile(io.BytesIO(answer.raw))
    assert archive.comment == b"parsyn of http://localhost"
    names = archive.namelist()
    for name in ("parsyn/hub/install_worker.sh", "parsyn_worker/constraints.txt"):
        assert f"site-packages/{name}" in names
    assert not [name for name in names if "__pycache__" in name]
    other = await anonymous.get("/install/parsyn.pyz", headers={"Host": "hub.example"})
    assert zipfile.ZipFile(io.BytesIO(other.raw)).comment == b"parsyn of http://hub.example"
    assert other.headers["ETag"] != answer.headers["ETag"]
    same = await anonymous.get("/install/parsyn.pyz", headers={"If-None-Match": f'"{digest}"'})
    assert (same.status, same.raw) == (304, b"")


async def test_a_command_that_cannot_be_made(
    anonymous: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_install.sys, "executable", "/bin/false")
    await anonymous.get("/install/parsyn.pyz")
    async with asyncio.timeout(30):
        while (
            "could not" not in (answer := await anonymous.get("/install/parsyn.pyz")).raw.decode()
        ):
            await asyncio.sleep(0.05)
    assert answer.status == 503
    assert "its log says why" in answer.body["detail"]
    assert "the zipapp for agents could not be made" in caplog.text


def test_a_hub_from_a_zipapp_gives_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "parsyn.pyz"
    with zipfile.ZipFile(own, "w") as archive:
        archive.writestr("__main__.py", "")
    monkeypatch.setattr("sys.argv", [str(own)])
    assert zipapp.ready(tmp_path / "data") == own


def test_the_name_of_the_command_changes_with_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "parsyn_plugins"
    package.mkdir()
    (package / "__init__.py").write_text("")
    home = zipapp._home
    monkeypatch.setattr(
        zipapp, "_home", lambda name: package if name == "parsyn_plugins" else home(name)
    )
    zipapp._fingerprint.cache_clear()
    before = zipapp.kept(tmp_path)
    (package / "more.py").write_text("x = 1\n")
    zipapp._fingerprint.cache_clear()
    assert zipapp.kept(tmp_path) != before
    zipapp._fingerprint.cache_clear()
