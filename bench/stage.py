"""A real hub process on a core of its own, and what must be in its database before it starts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from parsyn import config  # noqa: E402
from parsyn.services import accounts, keys, training  # noqa: E402
from parsyn.services.accounts import digest  # noqa: E402
from parsyn.services.context import Context, open_context  # noqa: E402
from parsyn.services.principal import ALL_SCOPES, Principal  # noqa: E402
from parsyn.store.datasets import Dataset  # noqa: E402
from parsyn.store.migrate import migrate  # noqa: E402
from parsyn.store.models import Model, ModelFile  # noqa: E402
from parsyn.store.projects import Project  # noqa: E402
from parsyn.store.workers import Worker  # noqa: E402
from parsyn.wire.api.training import TrainingJobIn  # noqa: E402
from parsyn.wire.states import (  # noqa: E402
    DatasetStatus,
    FileFormat,
    ModelSource,
    ModelState,
    Role,
    SchemaKind,
    Scope,
)
from tests.postgres_server import PostgresServer, find_binaries  # noqa: E402

READY_SECONDS = 60
WEIGHTS = b"not weights, but bytes all the same"
TICKS = os.sysconf("SC_CLK_TCK")


def report(bench: str, name: str, value: float, unit: str, goal: float | None = None) -> None:
    """One measurement as a JSON line."""
    line: dict[str, Any] = {"bench": bench, "name": name, "value": round(value, 4), "unit": unit}
    if goal is not None:
        line["goal"] = goal
    print(json.dumps(line), flush=True)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of them do not exceed (nearest rank); NaN of none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# --- what is stored before --------------------------------------------------------------------


@dataclass
class World:
    """An owner with a key, and what belongs to them."""

    api_key: str
    project_id: int
    worker_keys: list[str] = field(default_factory=list)
    job_ids: list[int] = field(default_factory=list)
    model_id: int = 0
    dataset_id: int = 0


def make_world(data: Path, *, workers: int, jobs: int, database: str = "sqlite") -> World:
    """Fill a data directory: an owner, so many registered workers, so many queued jobs."""
    settings = config.load(data_dir=data, env={}, flags={"hub.database": database})
    context = open_context(settings)
    try:
        migrate(context.database)
        with context.database.transaction():
            return _fill(context, workers, jobs)
    finally:
        context.close()


def _fill(context: Context, workers: int, jobs: int) -> World:
    user = accounts.create_user("bench@example.org", "Bench", "correct horse battery", Role.OWNER)
    who = Principal(user.id, Role.OWNER, ALL_SCOPES, "bearer")
    project = Project.get(Project.owner == user)
    made = World(str(keys.create(who, "bench", list(Scope), None)["key"]), project.id)
    for number in range(workers):
        key = f"wkr_bench_{number}"
        Worker.create(user=user, project=project, name=f"rig-{number:04}", key_hash=digest(key))
        made.worker_keys.append(key)
    made.model_id = _model(context, user, project)
    made.dataset_id = _dataset(context, user, project)
    body = TrainingJobIn(model_id=made.model_id, dataset_id=made.dataset_id)
    for _ in range(jobs):
        job = training.create(context, who, body)
        training.start(context, who, job["id"])
        made.job_ids.append(job["id"])
    return made


def _model(context: Context, user: Any, project: Any) -> int:
    row = Model.create(
        user=user, project=project, name="Tiny", slug="tiny", state=ModelState.READY,
        source=ModelSource.IMPORT, formats=["hf"], architecture="LlamaForCausalLM",
        context_length=512,
    )  # fmt: skip
    key = f"models/{row.id}/model.safetensors"
    stored = context.storage.put(key, [WEIGHTS])
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    ModelFile.create(model=row, path="model.safetensors", key=key, size=stored.size, sha256=sha256)
    return int(row.id)


def _dataset(context: Context, user: Any, project: Any) -> int:
    key = f"datasets/{project.id}/bench.jsonl"
    stored = context.storage.put(key, [WEIGHTS])
    row = Dataset.create(
        user=user, project=project, name="Bench", filename="bench.jsonl", key=key,
        size=stored.size, sha256=hashlib.sha256(WEIGHTS).hexdigest(), status=DatasetStatus.READY,
        file_format=FileFormat.JSONL, schema_kind=SchemaKind.MESSAGES, row_count=1,
        bad_row_count=0,
    )  # fmt: skip
    return int(row.id)


@contextmanager
def database(kind: str) -> Iterator[tuple[str, Path]]:
    """(`hub.database`, an empty folder) for "sqlite" or for a "postgresql" of its own."""
    with tempfile.TemporaryDirectory(prefix="parsyn-bench-") as work:
        if kind == "sqlite":
            yield "sqlite", Path(work)
            return
        binaries = find_binaries()
        if binaries is None:
            raise SystemExit("PostgreSQL's server is not installed here.")
        server = PostgresServer(binaries)
        server.start()
        try:
            yield server.url(server.create_database()), Path(work)
        finally:
            server.stop()


# --- the process ------------------------------------------------------------------------------


def cores() -> tuple[int | None, int | None]:
    """(the hub's core, the simulator's); (None, None) where there is only one or no taskset."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2 or not shutil.which("taskset"):
        return None, None
    return usable[0], usable[1]


class HubProcess:
    """`parsyn serve` pinned to a core; what it uses is read from /proc."""

    def __init__(self, data: Path, *, core: int | None = None, port: int = 0, **env: str) -> None:
        self.data, self.core, self.port = data, core, port
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS)), **env}
        self.log = data.with_name(f"{data.name}-hub.log")

    def start(self) -> float:
        """Start and wait for the greeting; the seconds that took."""
        pin = ["taskset", "-c", str(self.core)] if self.core is not None else []
        command = [
            *pin, sys.executable, *os.environ.get("BENCH_HUB_PYTHON", "").split(), "-m",
            "parsyn.cli.main", "serve", "--no-jobs", "--data", str(self.data),
            "--port", str(self.port),
        ]  # fmt: skip
        began = time.monotonic()
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=self.env
            )
        self._wait_for_greeting()
        return time.monotonic() - began

    def _wait_for_greeting(self) -> None:
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline, text = time.monotonic() + READY_SECONDS, ""
        while time.monotonic() < deadline and self.process.poll() is None:
            select.select([self.process.stdout], [], [], 0.2)
            text += (self.process.stdout.read() or b"").decode()
            found = re.search(r"Address\s+http://\S+:(\d+)", text)
            if found and "Data directory" in text:
                self.port = int(found[1])
                return
        raise SystemExit(f"The hub did not start:\n{self.log.read_text()[-2000:]}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """User and system time of the hub process itself so far."""
        return cpu_seconds(self.process.pid)

    def memory_mb(self, *, peak: bool = True) -> float:
        """Resident memory at its highest, or now, in MB (10**6)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{'VmHWM' if peak else 'VmRSS'}:\s+(\d+) kB", status)
        return int(found[1]) * 1024 / 1e6 if found else float("nan")

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
        if self.process.stdout:
            self.process.stdout.close()


PATHS = (ROOT, ROOT / "worker", ROOT / "plugins")


@contextmanager
def serving(data: Path, **options: Any) -> Iterator[HubProcess]:
    # So that the hub is stopped too when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hub = HubProcess(data, **options)
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()
