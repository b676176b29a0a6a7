"""The hub dies and comes back while a job runs; its agent goes on and the job completes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from parsyn.config import load
from parsyn.services.context import open_context
from parsyn.store.projects import Project
from parsyn.store.users import User
from parsyn.wire.states import Scope
from parsyn.wire.worker import CloseCode
from tests.appliance import Appliance
from tests.hub.conftest import Person, make_key
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import make_dataset, make_model


def furnish(data: Path) -> dict[str, Any]:
    """A model, a dataset and a key for the owner; while no hub runs."""
    context = open_context(load(data_dir=data, env={}), "redis://127.0.0.1:1")
    try:
        with context.database.connection():
            user = User.get()
            project = Project.get(Project.owner == user)
        who = Person(None, context, user.id, project.id)  # type: ignore[arg-type]
        return {
            "key": make_key(
                context, user.id, [Scope.READ, Scope.WRITE, Scope.WORKERS, Scope.INFERENCE]
            ),
            "model_id": make_model(context, who),
            "dataset_id": make_dataset(context, who),
        }
    finally:
        context.close()


async def test_killed_and_restarted_while_a_job_runs(tmp_path: Path) -> None:
    hub = Appliance(tmp_path / "data")
    await asyncio.to_thread(hub.create_owner)
    made = await asyncio.to_thread(furnish, tmp_path / "data")
    await asyncio.to_thread(hub.start)
    try:
        await _work_through_a_crash(hub, made)
    finally:
        await asyncio.to_thread(hub.stop)


async def _work_through_a_crash(hub: Appliance, made: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {made['key']}"}

    async def ask(method: str, path: str, body: Any = None) -> Any:
        async with httpx.AsyncClient(base_url=hub.url, trust_env=False, headers=headers) as http:
            answer = await http.request(method, f"/api/v1{path}", json=body)
            assert answer.is_success, answer.text
            return answer.json()

    worker = await ask("POST", "/workers", {"name": "rig"})
    agent = FakeAgent(hub.url, worker["api_key"])
    await agent.connect()
    ids = {"model_id": made["model_id"], "dataset_id": made["dataset_id"]}
    job = await ask("POST", "/training-jobs", ids)
    path = f"/training-jobs/{job['id']}"
    await ask("POST", f"{path}/start")
    offer = await agent.offer()
    await agent.metric(offer, 1, loss=3.0)
    await agent.checkpoint(offer, 1)
    await agent.acknowledged()

    await asyncio.to_thread(hub.kill)
    await agent.metric(offer, 2, loss=2.0)
    await agent.log(offer, "Still at it.")
    await agent.state(offer, 2, 3)
    assert len(agent.spool) == 3
    await asyncio.to_thread(hub.start)

    seen = len(agent.received)
    welcome = await agent.connect()
    assert welcome.stale == ()
    await agent.acknowledged()
    running = await ask("GET", path)
    assert (running["status"], running["attempt"]) == ("running", 1)
    assert running["progress"]["step"] == 2
    await agent.complete(offer, {"adapter_config.json": b"{}"}, steps=3)
    await agent.acknowledged()
    done = await ask("GET", path)
    assert (done["status"], done["attempt"]) == ("completed", 1)
    series = (await ask("GET", f"{path}/metrics"))["series"]["loss"]
    assert [point[0] for point in series] == [1, 2]
    assert not [m for m in agent.received[seen:] if m.type == "cancel"]

    stopping = asyncio.create_task(asyncio.to_thread(hub.stop))
    assert (await agent.closed())[0] == CloseCode.SERVICE_RESTART
    assert await stopping == 0
