"""Each server that `hub.server` may name serves pages, both sockets, streams and large bodies."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from parsyn.wire.worker import CloseCode
from tests.appliance import Appliance
from tests.hub.chat_stage import events, text_of
from tests.hub.job_stage import Work
from tests.hub.scripted_agent import ScriptedAgent, echo
from tests.hub.test_socket_dashboard import Browser
from tests.hub.test_socket_restart import furnish


@pytest.fixture(params=["hypercorn", "uvicorn", "granian"])
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Appliance]:
    running = Appliance(tmp_path / "data", env={"PARSYN_HUB_SERVER": request.param})
    await asyncio.to_thread(running.create_owner)
    made = await asyncio.to_thread(furnish, running.data)
    await asyncio.to_thread(running.start)
    running.made = made  # type: ignore[attr-defined]
    yield running
    if running.process.poll() is None:
        await asyncio.to_thread(running.stop)


async def test_it_serves(hub: Appliance) -> None:
    made: dict[str, Any] = hub.made  # type: ignore[attr-defined]
    headers = {"Authorization": f"Bearer {made['key']}"}
    async with httpx.AsyncClient(
        base_url=hub.url, headers=headers, trust_env=False, timeout=20
    ) as http:
        assert (await http.get("/health")).json()["status"] == "ok"
        assert (await http.get("/api/v1/no-such-thing")).status_code == 404
        worker = (await http.post("/api/v1/workers", json={"name": "rig"})).json()
        stage = cast("Work", SimpleNamespace(stage=SimpleNamespace(url=hub.url)))
        browser = await Browser(stage).open(made["key"])
        await browser.watch("fleet")
        async with ScriptedAgent(hub.url, worker["api_key"], echo) as agent:
            online = await browser.next("worker.state")
            assert (online["name"], online["status"]) == ("rig", "idle")
            assert text_of(await _ask(http, made["model_id"])) == "Echo: word by word"
            await _upload(http)
            code = await asyncio.to_thread(hub.stop)
            await agent.socket.wait_closed()
            assert agent.socket.close_code == CloseCode.SERVICE_RESTART
        await browser.socket.wait_closed()
        assert browser.socket.close_code == CloseCode.SERVICE_RESTART
    assert code == 0


async def _ask(http: httpx.AsyncClient, model_id: int) -> Any:
    made = await http.post("/api/v1/conversations", json={"model_id": model_id})
    path = f"/api/v1/conversations/{made.json()['id']}/messages"
    async with http.stream("POST", path, json={"content": "word by word"}) as answer:
        return [event async for event in events(answer)]


async def _upload(http: httpx.AsyncClient) -> None:
    body = b"0123456789abcdef" * (3 * 65_536)
    wanted = {"filename": "a.jsonl", "size": len(body), "purpose": "dataset"}
    upload = (await http.post("/api/v1/uploads", json=wanted)).json()
    path = f"/api/v1/uploads/{upload['id']}"
    for n in range(upload["parts_total"]):
        part = body[n * upload["part_size"] : (n + 1) * upload["part_size"]]
        assert (await http.put(f"{path}/parts/{n + 1}", content=part)).status_code == 200
    done = await http.post(f"{path}/complete", json={})
    assert done.json()["sha256"] == hashlib.sha256(body).hexdigest()
