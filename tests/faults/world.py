"""What is there before anything goes wrong: a user, a model, data, workers; copied per case."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher

from parsyn import config
from parsyn.plugin import hookimpl
from parsyn.services import accounts, enrollment, keys, workers
from parsyn.services.context import Context, open_context
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.datasets import Dataset
from parsyn.store.migrate import migrate
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import Project
from parsyn.wire.api.workers import MasterKeyIn, WorkerIn
from parsyn.wire.states import ModelState, Role, Scope

HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("x")
ROWS = (
    b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}\n'
)
LEASES: dict[str, config.Value] = {
    "leases.heartbeat_seconds": 7.5,
    "leases.offline_seconds": 22.5,
    "leases.unreachable_seconds": 15.0,
    "leases.offer_seconds": 5.0,
    "leases.boot_grace_seconds": 22.5,
    "leases.max_attempts": 1000,
    "storage.part_bytes": 65536,
}
"""A quarter of the defaults; attempts without an end, so that whatever ends a job is a fault."""


@dataclass
class Furniture:
    """What the database holds: who asks, with what, and the workers' keys by name."""

    api_key: str
    model_id: int
    dataset_id: int
    workers: dict[str, tuple[int, str]] = field(default_factory=dict)
    enrollment_key: str = ""


class Effects:
    """A plugin that acts on events, each `event_id` once, as its writers are told to do."""

    def __init__(self) -> None:
        self.seen: dict[int, dict[str, Any]] = {}
        self.calls = 0
        self.contradictions: list[str] = []

    def _take(self, event: dict[str, Any]) -> None:
        self.calls += 1
        if self.seen.setdefault(event["event_id"], event) != event:
            self.contradictions.append(f"event {event['event_id']} came as another one")

    @hookimpl
    def job_changed(self, event: dict[str, Any]) -> None:
        self._take(event)

    @hookimpl
    def artifact_stored(self, event: dict[str, Any]) -> None:
        self._take(event)

    @hookimpl
    def worker_changed(self, event: dict[str, Any]) -> None:
        self._take(event)


def open_base(data: Path, database: str) -> Context:
    """A context without Redis on a data directory."""
    flags = {**LEASES, "hub.database": database}
    return open_context(config.load(data_dir=data, env={}, flags=flags))


def furnish(context: Context) -> Furniture:
    """Fill an empty database."""
    migrate(context.database)
    with context.database.transaction():
        user = accounts.create_user("ada@example.org", "Ada", "x", Role.OWNER, HASH)
        project = Project.get(Project.owner == user)
        who = Principal(user.id, Role.OWNER, ALL_SCOPES, "bearer")
        owned = {"user": user, "project": project}
        model = Model.create(
            **owned, name="Tiny", slug="tiny", state=ModelState.READY, source="import",
            formats=["hf"], architecture="LlamaForCausalLM", context_length=512,
        )  # fmt: skip
        weights = context.storage.put(f"models/{model.id}/model.safetensors", [b"weights"])
        ModelFile.create(
            model=model, path="model.safetensors", key=weights.key, size=weights.size,
            sha256=weights.sha256,
        )  # fmt: skip
        stored = context.storage.put("datasets/rows.jsonl", [ROWS])
        dataset = Dataset.create(
            **owned, name="Rows", filename="rows.jsonl", key=stored.key, size=stored.size,
            sha256=hashlib.sha256(ROWS).hexdigest(), status="ready", file_format="jsonl",
            schema_kind="messages", row_count=1, bad_row_count=0,
        )  # fmt: skip
        made = Furniture(
            api_key=str(keys.create(who, "faults", list(Scope), None)["key"]),
            model_id=model.id,
            dataset_id=dataset.id,
        )
        for name in ("ant", "bee", "cat", "eve"):
            worker = workers.create(context, who, WorkerIn(name=name))
            made.workers[name] = (worker["worker"]["id"], worker["api_key"])
        key = enrollment.create_key(who, MasterKeyIn(name="lab", auto_name_prefix="dog"))
        made.enrollment_key = str(key["key"])
    return made


class Template:
    """A furnished data directory, and a database to copy where it is not in the directory."""

    def __init__(self, folder: Path, url: str = "sqlite", database_name: str = "") -> None:
        self.folder, self.database_name = folder, database_name
        context = open_base(folder, url)
        self.furniture = furnish(context)
        context.close()

    def copy(self, target: Path) -> None:
        shutil.copytree(self.folder, target)
