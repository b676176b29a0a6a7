"""`parsyn doctor` on an agent's machine: what it finds, what it advises, what it repairs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from parsyn import __version__
from parsyn.plugin.check import Finding
from parsyn.wire.worker import CloseCode
from parsyn_worker import doctor, doctor_machine, probe, runtime
from parsyn_worker import main as agent
from parsyn_worker.config import read_env
from parsyn_worker.patient import Patient
from parsyn_worker.runtime import Runtime
from parsyn_worker.standing import Standing, StandingFile
from tests.worker.fake_hub import FakeHub

Rows = dict[str, dict[str, Any]]
GOOD = {"level": "ok", "found": "good", "advice": None}


@pytest.fixture
def folder(
    worker_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    """An agent's folder without settings; what torch says is another test's matter."""
    for name in ("PLATFORM_URL", "WORKER_API_KEY"):
        monkeypatch.delenv(name)
    trials = {name: {"trial": name, **GOOD} for name in ("torch", "bf16 matmul", "bitsandbytes",
                                                         "LoRA step")}  # fmt: skip
    monkeypatch.setattr(doctor_machine, "_trials", lambda _: (trials, ""))
    yield tmp_path / "agent"
    agent.stop(tmp_path / "agent")


async def examine(folder: Path, fix: bool = False) -> Rows:
    rows = await asyncio.to_thread(doctor.run_doctor, folder, fix)
    return {row["title"]: row for row in rows}


def set_up(folder: Path, url: str, key: str = "enroll_good") -> None:
    agent.init_worker(folder, url=url, key=key, device="cpu")


async def test_a_good_machine(hub: FakeHub, folder: Path) -> None:
    set_up(folder, hub.url)
    rows = await examine(folder)
    assert [row for row in rows.values() if row["level"] == "error"] == []
    assert list(rows) == [
        "Configuration", "Address", "Files", "Agent", "Unsent reports", "Key", "DNS", "TCP", "TLS",
        "HTTP", "WebSocket", "Versions", "Clock", "Disk", "Memory", "Driver", "Runtime", "torch",
        "bf16 matmul", "bitsandbytes", "LoRA step", "Plugins",
    ]  # fmt: skip
    assert rows["Versions"]["found"] == f"hub and agent are {__version__}"
    assert "takes the key" in rows["WebSocket"]["found"]
    assert all(row["advice"] for row in rows.values() if row["level"] != "ok")
    assert {row["fixed"] for row in rows.values()} == {None}


async def test_a_machine_that_is_not_set_up_is_examined_all_the_same(folder: Path) -> None:
    rows = await examine(folder)
    assert rows["Configuration"]["level"] == "error"
    assert "PLATFORM_URL is not set" in rows["Configuration"]["found"]
    assert rows["Configuration"]["advice"] == "Run `parsyn init`."
    assert {"Disk", "Memory", "Driver", "torch", "LoRA step"} <= set(rows)
    assert not {"DNS", "TCP", "WebSocket"} & set(rows)


async def test_the_way_to_the_hub_layer_by_layer(hub: FakeHub, folder: Path) -> None:
    set_up(folder, hub.url, "wkr_unknown")
    rows = await examine(folder)
    assert rows["TCP"]["level"] == rows["HTTP"]["level"] == "ok"
    assert "does not know this key" in rows["WebSocket"]["found"]
    assert "unknown key" in rows["WebSocket"]["found"], "the hub's own words"
    await hub.vanish()
    rows = await examine(folder)
    assert rows["DNS"]["level"] == "ok"
    assert rows["TCP"]["level"] == rows["HTTP"]["level"] == rows["WebSocket"]["level"] == "error"
    set_up_again(folder, "https://nowhere.invalid")
    rows = await examine(folder)
    assert "nowhere.invalid has no address" in rows["DNS"]["found"]


def set_up_again(folder: Path, url: str) -> None:
    agent.init_worker(folder, url=url, key="enroll_good", device="cpu", force=True)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (CloseCode.REVOKED, "The worker attic was removed from this hub."),
        (CloseCode.KEY_EXHAUSTED, "The enrolment key lab has expired."),
        (CloseCode.KEY_EXHAUSTED, "The enrolment key lab has been used 3 times, its limit."),
        (CloseCode.ALREADY_CONNECTED, "attic is connected already, from another agent."),
    ],
)
async def test_a_refusal_is_told_in_the_hubs_words(
    hub: FakeHub, folder: Path, code: CloseCode, reason: str
) -> None:
    set_up(folder, hub.url)
    hub.refuse_with = (code, reason)
    found = (await examine(folder))["WebSocket"]
    assert found["level"] == "error"
    assert reason in found["found"]


# --- answers of the hub -----------------------------------------------------------------------


Answer = Callable[[], bytes]


@asynccontextmanager
async def answering(make: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that gives one HTTP answer to everything; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(make())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def answer(body: str, status: str = "200 OK", off: float = 0.0) -> bytes:
    date = formatdate(time.time() - off, usegmt=True)
    return (
        f"HTTP/1.1 {status}\r\nDate: {date}\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}"
    ).encode()


def health(**values: str) -> str:
    return json.dumps({"status": "ok", "version": __version__, **values})


async def asked(folder: Path, make: Answer) -> Rows:
    async with answering(make) as port:
        set_up(folder, f"http://127.0.0.1:{port}")
        return await examine(folder)


@pytest.mark.parametrize(
    ("off", "words"), [(3600, "60 minutes ahead of"), (-3600, "60 minutes behind"),
                       (90000, "25 hours ahead of"), (-185, "3 minutes behind")],
)  # fmt: skip
async def test_a_clock_that_is_off(folder: Path, off: float, words: str) -> None:
    rows = await asked(folder, lambda: answer(health(), off=off))
    assert rows["Clock"]["level"] == "warn"
    assert words in rows["Clock"]["found"]
    assert "timedatectl set-ntp true" in rows["Clock"]["advice"]


async def test_a_clock_that_fits(folder: Path) -> None:
    rows = await asked(folder, lambda: answer(health(), off=5))
    assert rows["Clock"]["level"] == "ok"


async def test_a_hub_of_another_version(folder: Path) -> None:
    rows = await asked(folder, lambda: answer(health(version="9.9.9")))
    assert rows["Versions"]["level"] == "warn"
    assert f"the hub is 9.9.9, this agent {__version__}" in rows["Versions"]["found"]
    assert "/install/worker | sh" in rows["Versions"]["advice"]


async def test_a_hub_that_is_not_well(folder: Path) -> None:
    body = health(status="failing", database="ok", redis="Redis is away.", storage="ok")
    rows = await asked(folder, lambda: answer(body, "503 Unavailable"))
    assert rows["HTTP"]["level"] == "warn"
    assert "redis: Redis is away." in rows["HTTP"]["found"]


async def test_an_address_that_is_no_hub(folder: Path) -> None:
    rows = await asked(folder, lambda: answer("<h1>It works</h1>"))
    assert "but not as a hub" in rows["HTTP"]["found"]
    assert rows["WebSocket"]["level"] == "error"
    assert "There is no hub at" in rows["WebSocket"]["found"]
    rows = await asked_again(folder, lambda: b"SSH-2.0-OpenSSH_9.2\r\n")
    assert rows["HTTP"]["level"] == "error"
    assert "does not answer like a hub" in rows["WebSocket"]["found"]


async def asked_again(folder: Path, make: Answer) -> Rows:
    async with answering(make) as port:
        set_up_again(folder, f"http://127.0.0.1:{port}")
        return await examine(folder)


# --- certificates -----------------------------------------------------------------------------


def certificate(folder: Path, *, days: int, names: str) -> tuple[Path, ssl.SSLContext]:
    """(its file, a server's context) of a self-signed certificate, made by openssl."""
    key, made = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out",
         str(made), "-days", str(days), "-subj", "/CN=hub", "-addext", f"subjectAltName={names}"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return made, context


@pytest.mark.parametrize(
    ("days", "names", "trusted", "level", "words"),
    [
        (90, "IP:127.0.0.1", True, "ok", "the certificate is good for 90 days"),
        (5, "IP:127.0.0.1", True, "warn", "the certificate is good for 5 days"),
        (90, "IP:127.0.0.1", False, "error", "self-signed certificate"),
        (90, "DNS:other.example", True, "error", "IP address mismatch"),
    ],
)
async def test_certificates(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    days: int, names: str, trusted: bool, level: str, words: str,
) -> None:  # fmt: skip
    made, context = certificate(tmp_path, days=days, names=names)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
    async with answering(lambda: answer(health()), context) as port:
        set_up(folder, f"https://127.0.0.1:{port}")
        found = (await examine(folder))["TLS"]
    assert found["level"] == level
    assert words in found["found"]
    assert (found["advice"] is None) == (level == "ok")


SIGNING = """[ca]
default_ca = own
[own]
database = index.txt
rand_serial = yes
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = IP:127.0.0.1
basicConstraints = CA:TRUE
"""


@pytest.mark.parametrize(
    ("start", "end", "words", "advice"),
    [
        ("20200101000000Z", "20200201000000Z", "certificate has expired", "must renew it"),
        ("20900101000000Z", "20910101000000Z", "certificate is not yet valid", "clock right?"),
    ],
)
async def test_a_certificate_out_of_its_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    start: str, end: str, words: str, advice: str,
) -> None:  # fmt: skip
    (tmp_path / "ca.cnf").write_text(SIGNING)
    (tmp_path / "index.txt").touch()
    made, _ = certificate(tmp_path, days=1, names="IP:127.0.0.1")
    for command in (
        "openssl req -new -key key.pem -subj /CN=hub -out hub.csr",
        "openssl ca -batch -selfsign -config ca.cnf -in hub.csr -keyfile key.pem -out cert.pem"
        f" -startdate {start} -enddate {end} -notext",
    ):
        subprocess.run(command.split(), check=True, capture_output=True, cwd=tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, tmp_path / "key.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    async with answering(lambda: answer(health()), context) as port:
        set_up(folder, f"https://127.0.0.1:{port}")
        found = (await examine(folder))["TLS"]
    assert found["level"] == "error"
    assert words in found["found"]
    assert advice in found["advice"]


async def test_a_hub_without_tls_at_a_wss_address(folder: Path) -> None:
    async with answering(lambda: answer(health())) as port:
        set_up(folder, f"wss://127.0.0.1:{port}")
        found = (await examine(folder))["TLS"]
    assert "does not speak TLS" in found["found"]
    assert "http://" in found["advice"]


async def test_a_proxy_stands_for_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        patient = Patient(folder)
        set_up(folder, "https://hub.invalid")
        assert doctor.doctor_hub.dns(patient).found == "127.0.0.1 is 127.0.0.1"
        assert doctor.doctor_hub.tcp(patient).found == f"the proxy 127.0.0.1:{port} answers"


# --- files ------------------------------------------------------------------------------------


async def test_what_can_be_repaired_is(hub: FakeHub, folder: Path) -> None:
    folder.mkdir()
    env = folder / ".env"
    env.write_text(f"PLATFORM_URL=http://127.0.0.1:{hub.port}\nWORKER_API_KEY=enroll_good\n")
    env.chmod(0o644)
    StandingFile(folder, Standing(phase="ready", pid=999999, tasks=["7 (attempt 1)"]))
    before = await examine(folder)
    assert before["Configuration"]["level"] == "error"
    assert "belongs into WORKER_ENROLLMENT_KEY" in before["Configuration"]["found"]
    assert before["Files"]["level"] == "error"
    assert before["Agent"]["level"] == "warn"
    assert "ended without a goodbye" in before["Agent"]["found"]

    rows = await examine(folder, fix=True)
    assert {title for title, row in rows.items() if row["fixed"]} >= {"Configuration", "Agent"}
    assert read_env(env) == {
        "PLATFORM_URL": f"ws://127.0.0.1:{hub.port}/ws/worker",
        "WORKER_ENROLLMENT_KEY": "enroll_good",
    }
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    assert agent.status(folder)["phase"] == "stopped"
    after = await examine(folder)
    assert [row for row in after.values() if row["level"] != "ok"] == []


async def test_rights_alone(hub: FakeHub, folder: Path) -> None:
    set_up(folder, hub.url)
    (folder / ".env").chmod(0o640)
    found = (await examine(folder))["Files"]
    assert "others may read" in found["found"]
    assert "chmod 600" in found["advice"]
    assert (await examine(folder, fix=True))["Files"]["fixed"]
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600


async def test_a_damaged_spool_is_set_aside_and_kept(hub: FakeHub, folder: Path) -> None:
    set_up(folder, hub.url)
    state = runtime.cache_dir(folder) / "state" / "cpu"
    state.mkdir(parents=True)
    (state / "spool.db").write_bytes(b"not a database at all" * 100)
    found = (await examine(folder))["Unsent reports"]
    assert found["level"] == "error"
    assert "is damaged" in found["found"]
    rows = await examine(folder, fix=True)
    assert rows["Unsent reports"]["level"] == "ok"
    assert len(list(state.glob("spool.damaged-*.db"))) == 1


async def test_reports_of_a_device_that_is_used_no_more(hub: FakeHub, folder: Path) -> None:
    set_up(folder, hub.url)
    state = runtime.cache_dir(folder) / "state" / "cuda-1"
    state.mkdir(parents=True)
    with sqlite3.connect(state / "spool.db") as database:
        database.execute("CREATE TABLE message (id INTEGER)")
        database.executemany("INSERT INTO message VALUES (?)", [(1,), (2,)])
    database.close()
    assert (await examine(folder))["Unsent reports"]["found"].endswith("2 of cuda-1")
    old = time.time() - 9 * 24 * 3600
    os.utime(state / "spool.db", (old, old))
    found = (await examine(folder, fix=True))["Unsent reports"]
    assert found["level"] == "warn"
    assert "have waited for over a week" in found["found"]
    assert (state / "spool.db").exists(), "reports are never thrown away"


# --- the machine ------------------------------------------------------------------------------


async def test_little_room(hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(folder, hub.url)
    monkeypatch.setattr(doctor_machine, "LITTLE_DISK", 1 << 60)
    monkeypatch.setattr(doctor_machine, "LITTLE_MEMORY", 1 << 60)
    rows = await examine(folder)
    assert rows["Disk"]["level"] == rows["Memory"]["level"] == "warn"
    monkeypatch.setattr(doctor_machine, "NO_DISK", 1 << 59)
    assert (await examine(folder))["Disk"]["level"] == "error"


async def test_a_gpu_is_set_and_no_driver_answers(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if probe.default_device() != "cpu":
        pytest.skip("this machine has a driver")
    set_up(folder, hub.url)
    monkeypatch.setenv("GPU_DEVICE", "cuda:0")
    found = (await examine(folder))["Driver"]
    assert found["level"] == "error"
    assert "nvidia-smi" in found["advice"]


async def test_a_runtime_of_another_version(hub: FakeHub, folder: Path) -> None:
    set_up(folder, hub.url)
    runtime.keep(runtime.cache_dir(folder), Runtime("existing", sys.executable, "", "0.0.1"))
    found = (await examine(folder))["Runtime"]
    assert found["level"] == "error"
    assert "parsyn runtime install" in found["found"]


async def test_a_broken_check_hides_no_other(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Patient) -> Finding:
        raise RuntimeError("inside")

    set_up(folder, hub.url)
    checks = (doctor.AgentCheck("Broken", broken), *doctor.CHECKS)
    monkeypatch.setattr(doctor, "CHECKS", checks)
    rows = await examine(folder)
    assert "RuntimeError: inside" in rows["Broken"]["found"]
    assert rows["Disk"]["level"] == "ok"


def test_the_trials_are_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch, a product, a step of LoRA, in a child of the runtime."""
    monkeypatch.setenv("GPU_DEVICE", "cpu")
    monkeypatch.setenv("CACHE_DIR", str(tmp_path))
    patient = Patient(tmp_path / "agent")
    found = {name: getattr(doctor_machine, name)(patient) for name in ("torch", "matmul", "lora")}
    assert found["torch"].found.startswith("torch 2.")
    assert "GFLOP/s" in found["matmul"].found
    assert found["matmul"].level in ("ok", "warn")
    assert found["lora"].level == "ok"
    assert found["lora"].found.startswith("loss ")


def test_a_child_that_dies_is_told_from_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    line = json.dumps({"trial": "torch", **GOOD})
    broken.write_text(
        f"#!/bin/sh\necho noise\necho '{line}'\necho 'Illegal instruction' >&2\nexit 4\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GPU_DEVICE", "cpu")
    runtime.keep(tmp_path, Runtime("existing", str(broken), "", __version__))
    patient = Patient(tmp_path / "agent")
    assert doctor_machine.torch(patient).level == "ok"
    found = doctor_machine.matmul(patient)
    assert found.level == "error"
    assert "Illegal instruction" in found.found


def test_a_python_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GPU_DEVICE", "cpu")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    code = str(Path(doctor_machine.__file__).parents[1])
    runtime.keep(tmp_path, Runtime("existing", f"{bare}/bin/python", code, __version__))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    patient = Patient(tmp_path / "agent")
    found = doctor_machine.torch(patient)
    assert found.level == "error"
    assert "No module named 'torch'" in found.found
    assert doctor_machine.lora(patient).found == "not tried"
