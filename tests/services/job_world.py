"""Jobs and workers without a network: what an agent would say is said by calling the services."""

from __future__ import annotations

import hashlib
from typing import Any

from argon2 import PasswordHasher

from parsyn import clock
from parsyn.services import accounts, presence, reports, scheduling, tasks, training, workers
from parsyn.services.context import Context
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job, StoredObject, Task
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import Project
from parsyn.wire.api.training import TrainingJobIn
from parsyn.wire.api.workers import WorkerIn
from parsyn.wire.refs import FileRef
from parsyn.wire.states import JobKind, ModelState, Role
from parsyn.wire.tasks import Failure, Manifest
from parsyn.wire.worker import Checkpoint, Hello, Result, TaskKey

HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("x")
SHA = hashlib.sha256(b"x").hexdigest()


class World:
    """One user with a model and a dataset. All of it runs inside `context`'s transactions."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._connections = 0
        self._seqs: dict[tuple[int, int], int] = {}
        with context.database.transaction():
            user = accounts.create_user("a@example.org", "Ada", "x", Role.USER, HASH)
            project = Project.get(Project.owner == user)
            self.who = Principal(user.id, Role.USER, ALL_SCOPES, "bearer")
            owned = {"user": user, "project": project}
            self.model = Model.create(
                **owned, name="Tiny", slug="tiny", state=ModelState.READY, source="import",
                formats=["hf"], architecture="LlamaForCausalLM",
            )  # fmt: skip
            ModelFile.create(model=self.model, path="m.bin", key="models/m.bin", size=1, sha256=SHA)
            self.dataset = Dataset.create(
                **owned, name="Rows", filename="rows.jsonl", key="datasets/rows.jsonl", size=1,
                sha256=SHA, status="ready", file_format="jsonl", schema_kind="messages",
                row_count=10,
            )  # fmt: skip

    # --- people -------------------------------------------------------------------------------

    def write(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return self.context.database.write_sync(fn, *args, **kwargs)

    def start(self) -> int:
        """The id of a queued job."""
        body = TrainingJobIn(model_id=self.model.id, dataset_id=self.dataset.id)
        made = self.write(training.create, self.context, self.who, body)
        self.write(training.start, self.context, self.who, made["id"])
        return int(made["id"])

    def cancel(self, job_id: int) -> None:
        self.write(tasks.cancel_job, self.context, self.who, job_id, JobKind.TRAINING)

    def job(self, job_id: int) -> Job:
        with self.context.database.connection():
            return Job.get_by_id(job_id)

    def task(self, job_id: int) -> Task:
        with self.context.database.connection():
            found = tasks.latest(job_id)
            assert found is not None
            return found

    # --- agents -------------------------------------------------------------------------------

    def worker(self, name: str = "rig") -> tuple[int, str]:
        """(id, key) of a registered worker that is connected."""
        made = self.write(workers.create, self.context, self.who, WorkerIn(name=name))
        self.arrive(made["api_key"])
        return int(made["worker"]["id"]), str(made["api_key"])

    def arrive(self, key: str, *running: TaskKey) -> presence.Arrival:
        self._connections += 1
        hello = Hello(version="0", running=running)
        arrival: presence.Arrival = self.write(
            presence.arrive, self.context, key, hello, f"test:{self._connections}"
        )
        return arrival

    def hear(self, worker_id: int) -> None:
        """A heartbeat came."""
        heard = {worker_id: (f"test:{self._connections}", clock.now(), None)}
        self.write(presence.touch, self.context, heard)

    def dispatch(self) -> int:
        return int(self.write(scheduling.dispatch, self.context))

    def run(self, job_id: int, worker_id: int) -> TaskKey:
        """Offer and accept; the attempt that runs."""
        self.dispatch()
        task = self.task(job_id)
        key = TaskKey(task_id=task.id, attempt=task.attempt)
        assert self.write(tasks.accept, self.context, worker_id, key) is not None
        return key

    def seq(self, key: TaskKey) -> int:
        pair = (key.task_id, key.attempt)
        self._seqs[pair] = self._seqs.get(pair, 0) + 1
        return self._seqs[pair]

    def put(self, key: TaskKey, path: str, body: bytes = b"x") -> FileRef:
        """Store as a ticket's PUT does."""
        digest = hashlib.sha256(body).hexdigest()
        ref = FileRef(
            path=path.partition("/")[2], key=f"tasks/{key.task_id}/{key.attempt}/{path}",
            size=len(body), sha256=digest,
        )  # fmt: skip
        self.context.storage.put(ref.key, [body])
        with self.context.database.transaction():
            StoredObject.create(
                task=key.task_id, attempt=key.attempt, path=path, key=ref.key, size=ref.size,
                sha256=digest,
            )  # fmt: skip
        return ref

    def checkpoint(self, worker_id: int, key: TaskKey, step: int) -> bool:
        file = self.put(key, f"checkpoints/{step}/model.bin")
        message = Checkpoint(
            **key.model_dump(), seq=self.seq(key), at=0.0, step=step, files=(file,)
        )
        return bool(self.write(reports.checkpoint, self.context, worker_id, message, None))

    def complete(self, worker_id: int, key: TaskKey, **facts: Any) -> Any:
        file = self.put(key, "result/adapter_config.json", b"{}")
        manifest = Manifest(files=(file,), facts=facts)
        return self.result(worker_id, key, outcome="completed", manifest=manifest)

    def fail(self, worker_id: int, key: TaskKey, reason: str) -> Any:
        failure = Failure.model_validate({"reason": reason, "message": "It broke."})
        return self.result(worker_id, key, outcome="failed", failure=failure)

    def result(self, worker_id: int, key: TaskKey, **values: Any) -> Any:
        message = Result(**key.model_dump(), seq=self.seq(key), at=0.0, **values)
        return self.write(reports.result, self.context, worker_id, message, None)
