"""Real processes: a hub with short leases, agents in folders of their own, a bad network between.

The trainer is `chain_plugin`, so that a job takes seconds and its result tells whether a step was
lost or doubled.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psutil

from parsyn import crash
from parsyn.store.outbox import Outbox
from parsyn.wire.states import JOB_TERMINAL
from tests.appliance import Appliance
from tests.faults.invariants import Lost, check
from tests.faults.people import Asked
from tests.faults.proxy import Proxy
from tests.faults.world import Template, open_base

LEASES = {
    "PARSYN_LEASES_HEARTBEAT_SECONDS": "0.5",
    "PARSYN_LEASES_OFFLINE_SECONDS": "3",
    "PARSYN_LEASES_UNREACHABLE_SECONDS": "2",
    "PARSYN_LEASES_OFFER_SECONDS": "2",
    "PARSYN_LEASES_BOOT_GRACE_SECONDS": "3",
    "PARSYN_LEASES_MAX_ATTEMPTS": "100",
    "PARSYN_JOBS_DELIVERY_SECONDS": "5",
}
PATIENCE = 120.0


class Rig:
    """An agent as a process; `cache` may be a small disk."""

    def __init__(self, name: str, folder: Path, env: dict[str, str]) -> None:
        self.name, self.folder, self.env = name, folder, env
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "agent.log"
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, crash_at: str = "") -> None:
        env = {**self.env, **({crash.VARIABLE: crash_at} if crash_at else {})}
        _let_torch_be_known(Path(env["CACHE_DIR"]))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "parsyn_worker.main", "start", "--dir", str(self.folder)],
                stdout=log, stderr=log, env=env, start_new_session=True,
            )  # fmt: skip

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def children(self) -> list[psutil.Process]:
        assert self.process
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def owes(self) -> bool:
        """Whether the hub has still to acknowledge something."""
        path = Path(self.env["CACHE_DIR"]) / "state" / "cpu" / "spool.db"
        if not path.exists():
            return False
        with contextlib.closing(sqlite3.connect(path)) as spool:
            return bool(spool.execute("SELECT COUNT(*) FROM message").fetchone()[0])

    def wait_for_death(self) -> int:
        assert self.process
        return self.process.wait(PATIENCE)


class Yard:
    """One hub; what is true of it afterwards is checked as for a simulated case."""

    def __init__(self, folder: Path, database: str = "sqlite", **env: str) -> None:
        self.folder, self.database = folder, database
        self.effects_file = folder / "effects.jsonl"
        self.plugin = _install_plugin(folder / "site")
        sys.path.insert(0, str(self.plugin))
        template = Template(folder / "data", database)
        sys.path.remove(str(self.plugin))
        self.furniture = template.furniture
        path = os.pathsep.join(filter(None, [str(self.plugin), os.environ.get("PYTHONPATH")]))
        self.env = {
            **LEASES, "PYTHONPATH": path, "CHAIN_EFFECTS": str(self.effects_file),
            "PARSYN_HUB_DATABASE": database, "OMP_NUM_THREADS": "1", **env,
        }  # fmt: skip
        self.hub = Appliance(folder / "data", env=dict(self.env))
        self.rigs: list[Rig] = []
        self.accepted: list[Asked] = []
        self.removed: set[str] = set()
        self.http = httpx.Client(
            headers={"Authorization": f"Bearer {self.furniture.api_key}"},
            trust_env=False, timeout=10,
        )  # fmt: skip

    def start(self, crash_at: str = "") -> None:
        self.hub.env = {**self.env, **({crash.VARIABLE: crash_at} if crash_at else {})}
        self.hub.start()
        if not hasattr(self, "proxy"):
            self.proxy = Proxy(self.hub.port)

    def start_again_when_dead(self) -> threading.Thread:
        """What a supervisor does, once; the thread ends when the hub stands again."""

        def wait_and_start() -> None:
            self.hub.process.wait(PATIENCE)
            self.hub.kill()
            self.start()

        died = threading.Thread(target=wait_and_start)
        died.start()
        return died

    def close(self) -> None:
        for rig in self.rigs:
            if rig.process and rig.process.poll() is None:
                rig.signal(signal.SIGCONT)
            rig.kill()
        if self.hub.process.poll() is None:
            self.hub.process.send_signal(signal.SIGCONT)
            self.hub.stop()
        self.proxy.close()
        self.http.close()

    def rig(self, name: str = "ant", **env: str) -> Rig:
        """An agent behind the proxy, started."""
        folder = self.folder / name
        made = Rig(
            name,
            folder,
            {
                **os.environ, "PYTHONPATH": self.env["PYTHONPATH"], "GPU_DEVICE": "cpu",
                "PLATFORM_URL": f"ws://127.0.0.1:{self.proxy.port}/ws/worker",
                "WORKER_API_KEY": self.furniture.workers[name][1] if name != "dog" else "",
                "WORKER_ENROLLMENT_KEY": self.furniture.enrollment_key if name == "dog" else "",
                "CACHE_DIR": str(folder / "cache"), "RECONNECT_DELAY": "0.2",
                "CANCEL_GRACE_SECONDS": "1", "BENCHMARK": "false", "OMP_NUM_THREADS": "1", **env,
            },
        )  # fmt: skip
        self.rigs.append(made)
        return made

    # --- the user -----------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """The answer's JSON; asks again while the hub is away."""
        headers = {"Idempotency-Key": key} if key else {}
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self.http.request(
                    method, f"{self.hub.url}/api/v1{path}", json=body, headers=headers
                )
                if answer.status_code < 500:
                    assert answer.is_success or answer.status_code == 409, answer.text
                    return answer.json() if answer.content else None
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, f"no answer to {method} {path}"
            time.sleep(0.1)

    def train(self, **params: Any) -> Asked:
        """A job that the hub has accepted."""
        config = {"max_steps": 12, **params}
        name = f"job {len(self.accepted)}"
        ids = {"model_id": self.furniture.model_id, "dataset_id": self.furniture.dataset_id}
        body = {"name": name, "trainer": "chain", "config": config, **ids}
        made = self.ask("POST", "/training-jobs", body, key=name)
        if "id" not in made:
            # The hub died with the request: one has to look whether it took effect.
            found = self.ask("GET", f"/training-jobs?search={name}")["items"]
            made = found[0] if found else self.ask("POST", "/training-jobs", body)
        self.ask("POST", f"/training-jobs/{made['id']}/start")
        self.accepted.append(Asked(made["id"], name, config["max_steps"]))
        return self.accepted[-1]

    def job(self, asked: Asked) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/training-jobs/{asked.id}")
        return found

    def until(self, asked: Asked, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The job once it is so. Raises Lost when it never is."""
        deadline = time.monotonic() + PATIENCE
        while not holds(row := self.job(asked)):
            if time.monotonic() > deadline:
                raise Lost(f"it never came to that: {row}\n{self.logs()}")
            time.sleep(0.05)
        return row

    def at_step(self, asked: Asked, step: int) -> dict[str, Any]:
        return self.until(asked, lambda row: (row["progress"].get("step") or 0) >= step)

    def ended(self, asked: Asked) -> dict[str, Any]:
        return self.until(asked, lambda row: row["status"] in JOB_TERMINAL)

    def causes(self, asked: Asked) -> list[str]:
        page = self.ask("GET", f"/training-jobs/{asked.id}/events")
        return [event["cause"] for event in page["items"]]

    def logs(self) -> str:
        paths = [self.hub.log, *(rig.log for rig in self.rigs if rig.log.exists())]
        return "\n".join(f"--- {path}\n{path.read_text()[-2500:]}" for path in paths)

    # --- afterwards ---------------------------------------------------------------------------

    def settle(self) -> None:
        """Every job has ended, every effect is brought about, and all of it is as it should be."""
        for asked in self.accepted:
            self.ended(asked)
        base = open_base(self.folder / "data", self.database)
        try:
            deadline = time.monotonic() + 180
            while self._owed(base):
                if time.monotonic() > deadline:
                    raise Lost(f"effects are not brought about\n{self.logs()}")
                time.sleep(0.1)
            lines = self.effects_file.read_text().splitlines() if self.accepted else []
            events = [json.loads(line) for line in lines]
            seen = {event["event_id"]: event for event in events}
            effects = SimpleNamespace(
                seen=seen, contradictions=[e for e in events if seen[e["event_id"]] != e]
            )
            witness, person = SimpleNamespace(late=[]), SimpleNamespace(accepted=self.accepted)
            case: Any = SimpleNamespace(
                base=base,
                effects=effects,
                witness=witness,
                person=person,
                agents=[],
                gone=set(),
                harmless=False,
            )
            check(case)
        finally:
            base.close()

    def _owed(self, base: Any) -> bool:
        """Whether an effect, or something that an agent has to say, is still on its way."""
        with base.database.connection():
            if Outbox.select().where(Outbox.done_at.is_null()).exists():
                return True
        return any(rig.owes() for rig in self.rigs if rig.name not in self.removed)


def _install_plugin(site: Path) -> Path:
    """A folder that is a distribution with the plugin's entry point."""
    site.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("chain_plugin.py"), site / "chain_plugin.py")
    info = site / "chain_plugin-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chain-plugin\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[parsyn]\nchain = chain_plugin\n")
    return site


def _let_torch_be_known(cache: Path) -> None:
    """As if it had been asked today: that takes seconds."""
    facts = {"torch": "2", "device_ok": True}
    kept = {"version": metadata.version("torch"), "at": time.time(), "facts": facts}
    (cache / "state").mkdir(parents=True, exist_ok=True)
    (cache / "state" / "torch-cpu.json").write_text(json.dumps(kept))
