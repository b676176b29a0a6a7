"""A listening hub with short leases, a model, a dataset, and fake agents."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from parsyn import config
from parsyn.services.context import Context, open_context
from parsyn.store.datasets import Dataset
from parsyn.store.migrate import migrate
from parsyn.store.models import Model, ModelFile
from parsyn.wire.states import DatasetStatus, FileFormat, ModelSource, ModelState, SchemaKind
from tests.hub.chat_stage import Stage, staged
from tests.hub.conftest import Person
from tests.hub.fake_agent import DEADLINE, FakeAgent

ROWS = (
    b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}\n'
)
WEIGHTS = b"not really weights, but bytes all the same"


def open_settings(data_dir: Path, redis_url: str, **values: config.Value) -> Context:
    """A context whose settings are the defaults but for `values` (`leases_offline_seconds=…`)."""
    flags = {name.replace("_", ".", 1): value for name, value in values.items()}
    opened = open_context(config.load(data_dir=data_dir, env={}, flags=flags), redis_url)
    migrate(opened.database)
    return opened


class Work:
    """What the tests of jobs do again and again."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.context = stage, stage.context
        self.owner = stage.owner
        self.model_id = make_model(stage.context, stage.owner)
        self.dataset_id = make_dataset(stage.context, stage.owner)
        self._agents: list[FakeAgent] = []

    async def worker(
        self, name: str = "rig", of: Person | None = None, **options: Any
    ) -> FakeAgent:
        """A registered and connected agent."""
        key = await self.worker_key(name, of)
        agent = FakeAgent(self.stage.url, key, **options)
        await agent.connect()
        self._agents.append(agent)
        return agent

    async def worker_key(self, name: str = "rig", of: Person | None = None) -> str:
        made = await self.ask("POST", "/workers", {"name": name}, of=of, status=201)
        return str(made["api_key"])

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        of: Person | None = None,
        status: int = 200,
    ) -> Any:
        """The JSON of an answer, whose status must be as said."""
        answer = await self.stage.call(method, f"/api/v1{path}", body, of)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def create(self, **changes: Any) -> dict[str, Any]:
        body = {"model_id": self.model_id, "dataset_id": self.dataset_id, **changes}
        made: dict[str, Any] = await self.ask("POST", "/training-jobs", body, status=201)
        return made

    async def start(self, **changes: Any) -> dict[str, Any]:
        """A job that is queued."""
        made = await self.create(**changes)
        started: dict[str, Any] = await self.ask("POST", f"/training-jobs/{made['id']}/start")
        return started

    async def job(self, job_id: int) -> dict[str, Any]:
        found: dict[str, Any] = await self.ask("GET", f"/training-jobs/{job_id}")
        return found

    async def until(
        self, job_id: int, holds: Callable[[dict[str, Any]], bool], path: str = "/training-jobs"
    ) -> dict[str, Any]:
        """The job once it is so."""
        row: dict[str, Any] = {}
        try:
            async with asyncio.timeout(DEADLINE):
                while not holds(row := await self.ask("GET", f"{path}/{job_id}")):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to that: {row}") from None
        return row

    async def status(
        self, job_id: int, status: str, path: str = "/training-jobs"
    ) -> dict[str, Any]:
        return await self.until(job_id, lambda row: row["status"] == status, path)

    async def causes(self, job_id: int) -> list[str]:
        page = await self.ask("GET", f"/training-jobs/{job_id}/events")
        return [event["cause"] for event in page["items"]]

    async def close(self) -> None:
        for agent in self._agents:
            await agent.leave()


@asynccontextmanager
async def working(context: Context) -> AsyncIterator[Work]:
    async with staged(context) as stage:
        work = Work(stage)
        yield work
        await work.close()


def make_model(context: Context, who: Person, name: str = "Tiny") -> int:
    """A ready model with one stored file."""
    with context.database.transaction():
        row = Model.create(
            user=who.user_id, project=who.project_id, name=name, slug=name.lower(),
            state=ModelState.READY, source=ModelSource.IMPORT, formats=["hf"],
            architecture="LlamaForCausalLM", context_length=512,
        )  # fmt: skip
        key = f"models/{row.id}/model.safetensors"
        stored = context.storage.put(key, [WEIGHTS])
        ModelFile.create(
            model=row, path="model.safetensors", key=key, size=stored.size,
            sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        )  # fmt: skip
        return int(row.id)


def make_dataset(context: Context, who: Person, name: str = "Greetings", **columns: Any) -> int:
    """A ready dataset with its file stored."""
    key = f"datasets/{who.project_id}/{name}.jsonl"
    stored = context.storage.put(key, [ROWS])
    with context.database.transaction():
        row = Dataset.create(
            **{
                "user": who.user_id,
                "project": who.project_id,
                "name": name,
                "filename": f"{name}.jsonl",
                "key": key,
                "size": stored.size,
                "sha256": hashlib.sha256(ROWS).hexdigest(),
                "status": DatasetStatus.READY,
                "file_format": FileFormat.JSONL,
                "schema_kind": SchemaKind.MESSAGES,
                "row_count": 1,
                "bad_row_count": 0,
                **columns,
            }
        )
        return int(row.id)
