"""A hub that really listens, people with keys, models and scripted agents."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

from parsyn.hub.app import create_app
from parsyn.services import workers
from parsyn.services.context import Context
from parsyn.store.models import Model, ModelFile
from parsyn.wire.api.workers import WorkerIn
from parsyn.wire.states import ModelSource, ModelState, Role, WorkerType
from tests.hub.conftest import Person, person
from tests.hub.scripted_agent import DEADLINE, Script, ScriptedAgent, echo

Events = list[tuple[str, dict[str, Any]]]


@dataclass
class Stage:
    url: str
    app: Quart
    context: Context
    http: httpx.AsyncClient
    owner: Person

    def agent(
        self, script: Script = echo, of: Person | None = None, name: str = "bench", **hello: Any
    ) -> ScriptedAgent:
        """A registered worker, to be entered as a context."""
        who = (of or self.owner).principal
        kind = hello.get("worker_type", WorkerType.BOTH)
        body = WorkerIn(name=name, worker_type=kind)
        made = self.context.database.write_sync(workers.create, self.context, who, body)
        return ScriptedAgent(self.url, made["api_key"], script, **hello)

    def model(self, name: str, of: Person | None = None, **columns: Any) -> int:
        """A model that is ready, unless `columns` say otherwise."""
        who = of or self.owner
        values = {
            "user": who.user_id,
            "project": who.project_id,
            "name": name,
            "slug": name.lower().replace(" ", "-"),
            "state": ModelState.READY,
            "source": ModelSource.IMPORT,
            "formats": ["hf"],
            **columns,
        }
        with self.context.database.transaction():
            row = Model.create(**values)
            key = f"models/{row.id}/model.safetensors"
            ModelFile.create(model=row, path="model.safetensors", key=key, size=1, sha256="0" * 64)
            return int(row.id)

    async def call(
        self, method: str, path: str, body: Any = None, of: Person | None = None
    ) -> httpx.Response:
        """A request with the owner's key, or another's; `path` below the root."""
        return await self.http.request(method, path, json=body, headers=self.headers(of))

    def headers(self, of: Person | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {(of or self.owner).key}"}

    async def conversation(self, model_id: int, **more: Any) -> str:
        """The path of a new conversation."""
        answer = await self.call("POST", "/api/v1/conversations", {"model_id": model_id, **more})
        assert answer.status_code == 201, answer.text
        return f"/api/v1/conversations/{answer.json()['id']}"

    async def ask(self, path: str, **body: Any) -> Events:
        """Post a message and read the stream to its end."""
        async with self.streaming(f"{path}/messages", body) as answer:
            assert answer.status_code == 200, await answer.aread()
            return [event async for event in events(answer)]

    def streaming(self, path: str, body: Any) -> Any:
        return self.http.stream("POST", path, json=body, headers=self.headers())

    async def messages(self, path: str) -> list[dict[str, Any]]:
        answer = await self.call("GET", path)
        found: list[dict[str, Any]] = answer.json()["messages"]
        return found

    async def wait_for_messages(self, path: str, count: int) -> list[dict[str, Any]]:
        """An answer that nobody reads any more is stored a little later."""
        async with asyncio.timeout(DEADLINE):
            while len(found := await self.messages(path)) < count:
                await asyncio.sleep(0.01)
        return found


async def events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in answer.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


async def wait_for_token(stream: AsyncIterator[tuple[str, Any]]) -> None:
    """Read up to the first token. Keep `stream`: the connection goes with it."""
    async for name, _ in stream:
        if name == "token":
            return
    raise AssertionError("there was no token")


def text_of(found: Events) -> str:
    return "".join(data["text"] for name, data in found if name == "token")


@asynccontextmanager
async def listening(context: Context) -> AsyncIterator[tuple[str, Quart]]:
    """A hub on a free port, in this process: its address and the application."""
    app = create_app(context)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.graceful_timeout = 1
    stop = asyncio.Event()
    server = asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
    yield f"http://127.0.0.1:{port}", app
    stop.set()
    await server


@asynccontextmanager
async def staged(context: Context) -> AsyncIterator[Stage]:
    """A listening hub with an owner."""
    async with listening(context) as (url, app), asking(url) as http:
        owner = person(app, context, "owner@example.org", Role.OWNER)
        yield Stage(url, app, context, http, owner)


def asking(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=DEADLINE, trust_env=False)
