"""PostgreSQL, Redis and two hub processes behind nginx: either may be killed, all goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from parsyn.demo.client import HubClient
from parsyn.errors import ParsynError
from parsyn.wire.worker import CloseCode
from tests.appliance import EMAIL, PASSWORD, Appliance
from tests.e2e.conftest import rows_jsonl
from tests.e2e.test_bad_luck import CONFIG, Agent, check_complete
from tests.hub.chat_stage import events, text_of, wait_for_token
from tests.hub.scripted_agent import ScriptedAgent, echo, until_stopped
from tests.hub.test_socket_dashboard import Browser
from tests.nginx_server import Nginx
from tests.postgres_server import PostgresServer
from tests.redis_server import RedisServer, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.timeout(600)]
SETTINGS = """
[hub]
database = "{database}"
redis = "{redis}"
trusted_proxies = ["127.0.0.1"]
[leases]
heartbeat_seconds = 0.5
offline_seconds = 12
unreachable_seconds = 60
boot_grace_seconds = 5
[storage]
part_bytes = 262144
"""
PATIENCE = 40.0


class Cluster:
    """`first` and `second` share a data directory, a database and a Redis; `url` is nginx's."""

    def __init__(self, data: Path, database: str, redis: RedisServer) -> None:
        data.mkdir(parents=True)
        self.redis = redis
        settings = SETTINGS.format(database=database, redis=redis.url)
        (data / "parsyn.toml").write_text(settings)
        self.first, self.second = (Appliance(data, port=free_port()) for _ in range(2))
        self.nginx = Nginx([self.first.port, self.second.port])
        self.url = self.nginx.url
        self.clients: list[HubClient] = []

    def start(self) -> None:
        self.first.create_owner()
        self.first.start()
        self.second.start()
        self.nginx.start()

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        self.nginx.stop()
        for hub in (self.first, self.second):
            assert hub.stop() == 0

    def client(self) -> HubClient:
        made = HubClient(self.url, EMAIL, PASSWORD)
        self.clients.append(made)
        return made

    def key(self) -> str:
        scopes = ["read", "write", "workers", "inference"]
        body = {"name": "test", "scopes": scopes}
        return str(self.client().call("POST", "/api/v1/api-keys", body)["key"])


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, postgres_template: str
) -> Iterator[Cluster]:
    redis = RedisServer()
    redis.start()
    database = postgres.url(postgres.create_database(postgres_template))
    made = Cluster(tmp_path_factory.mktemp("cluster") / "data", database, redis)
    try:
        made.start()
        yield made
        made.stop()
    finally:
        redis.stop()


@pytest.fixture(scope="module")
def tiny(cluster: Cluster, tiny_folder: Path) -> int:
    return int(str(cluster.first.import_model(tiny_folder, "Tiny")["id"]))


@pytest.fixture
async def http(cluster: Cluster) -> Any:
    key = await asyncio.to_thread(cluster.key)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as made:
        made.base_url = httpx.URL(cluster.url)
        yield made


def stage_of(url: str) -> Any:
    return cast("Any", SimpleNamespace(stage=SimpleNamespace(url=url)))


def key_of(http: httpx.AsyncClient) -> str:
    return http.headers["Authorization"].removeprefix("Bearer ")


async def new_worker(http: httpx.AsyncClient, name: str) -> dict[str, Any]:
    made: dict[str, Any] = (await http.post("/api/v1/workers", json={"name": name})).json()
    return made


async def conversation(http: httpx.AsyncClient, model_id: int) -> str:
    made = await http.post("/api/v1/conversations", json={"model_id": model_id})
    return f"/api/v1/conversations/{made.json()['id']}/messages"


async def ask(http: httpx.AsyncClient, url: str, path: str, text: str) -> Any:
    async with http.stream("POST", f"{url}{path}", json={"content": text}) as answer:
        assert answer.status_code == 200, await answer.aread()
        return [event async for event in events(answer)]


def test_an_upload_whose_parts_arrive_at_either_process(cluster: Cluster) -> None:
    client = cluster.client()
    content = rows_jsonl(10_000)
    body = {"filename": "n.jsonl", "size": len(content), "purpose": "dataset"}
    upload = client.call("POST", "/api/v1/uploads", body)
    size, path = upload["part_size"], f"/api/v1/uploads/{upload['id']}"
    hubs = (cluster.first, cluster.second)
    for n in range(upload["parts_total"]):
        part = content[n * size : (n + 1) * size]
        url = f"{hubs[n % 2].url}{path}/parts/{n + 1}"
        assert client.http.put(url, content=part).status_code == 200
    assert upload["parts_total"] >= 2
    client.call("POST", f"{path}/complete", {})
    made = client.call("POST", "/api/v1/datasets", {"name": "N", "upload_id": upload["id"]})
    where = f"/api/v1/datasets/{made['id']}"
    client.wait(where, lambda row: row["status"] == "ready", seconds=60)


def test_a_login_holds_at_both_and_shows_where_it_came_from(cluster: Cluster) -> None:
    client = cluster.client()
    for hub in (cluster.first, cluster.second):
        found = client.http.get(f"{hub.url}/api/v1/me/sessions").json()["items"]
        assert {row["ip"] for row in found} == {"127.0.0.1"}


async def test_a_chat_whose_process_dies_ends_with_an_error_and_the_next_one_works(
    cluster: Cluster, http: httpx.AsyncClient, tiny: int
) -> None:
    worker = await new_worker(http, "chatty")
    async with ScriptedAgent(cluster.second.url, worker["api_key"], until_stopped):
        path = await conversation(http, tiny)
        body = {"content": "tell me"}
        async with http.stream("POST", f"{cluster.first.url}{path}", json=body) as answer:
            stream = events(answer)
            await wait_for_token(stream)
            await asyncio.to_thread(cluster.second.kill)
            began = time.monotonic()
            rest = [event async for event in stream]
    assert rest[-1][0] == "error"
    assert "went away" in rest[-1][1]["detail"]
    assert time.monotonic() - began < 20
    async with ScriptedAgent(cluster.url, worker["api_key"], echo):
        assert text_of(await ask(http, cluster.first.url, path, "again")) == "Echo: again"
    await asyncio.to_thread(cluster.second.start)
    await http.delete(f"/api/v1/workers/{worker['worker']['id']}")


async def test_a_reader_whose_process_dies_stops_the_worker_of_the_other(
    cluster: Cluster, http: httpx.AsyncClient, tiny: int
) -> None:
    worker = await new_worker(http, "patient")
    async with ScriptedAgent(cluster.first.url, worker["api_key"], until_stopped) as agent:
        path = await conversation(http, tiny)
        with pytest.raises(httpx.HTTPError):
            await read_while_it_dies(http, cluster.second, path)
        async with asyncio.timeout(PATIENCE):
            await agent._cancel_of(agent.chats[0].chat_id).wait()
        # Nobody is left who holds the conversation.
        agent.script = echo
        found = await ask(http, cluster.first.url, path, "and now")
        assert text_of(found).endswith("and now")
    await asyncio.to_thread(cluster.second.start)
    await http.delete(f"/api/v1/workers/{worker['worker']['id']}")


async def read_while_it_dies(http: httpx.AsyncClient, hub: Appliance, path: str) -> None:
    async with http.stream("POST", f"{hub.url}{path}", json={"content": "go"}) as answer:
        stream = events(answer)
        await wait_for_token(stream)
        await asyncio.to_thread(hub.kill)
        async for _ in stream:
            pass


async def test_a_worker_revoked_at_one_process_is_cut_off_at_the_other(
    cluster: Cluster, http: httpx.AsyncClient
) -> None:
    worker = await new_worker(http, "fired")
    async with ScriptedAgent(cluster.first.url, worker["api_key"], echo) as agent:
        began = time.monotonic()
        gone = await http.delete(f"{cluster.second.url}/api/v1/workers/{worker['worker']['id']}")
        assert gone.is_success
        await agent.socket.wait_closed()
        assert time.monotonic() - began < 5
        assert agent.socket.close_code == CloseCode.REVOKED


async def test_dashboards_of_a_dead_process_watch_on_at_the_other(
    cluster: Cluster, http: httpx.AsyncClient
) -> None:
    key = key_of(http)
    browser = await Browser(stage_of(cluster.second.url)).open(key)
    await browser.watch("fleet")
    await asyncio.to_thread(cluster.second.kill)
    await browser.socket.wait_closed()
    again = await Browser(stage_of(cluster.url)).open(key)
    await again.watch("fleet")
    await asyncio.to_thread(cluster.second.start)
    worker = await new_worker(http, "seen")
    async with ScriptedAgent(cluster.second.url, worker["api_key"], echo):
        async with asyncio.timeout(PATIENCE):
            while (await again.next("worker.state")).get("status") != "idle":
                pass
    await again.socket.close()
    await http.delete(f"/api/v1/workers/{worker['worker']['id']}")


async def test_redis_may_be_killed_under_both(
    cluster: Cluster, http: httpx.AsyncClient, tiny: int
) -> None:
    browser = await Browser(stage_of(cluster.second.url)).open(key_of(http))
    await browser.watch("fleet")
    worker = await new_worker(http, "steady")
    async with ScriptedAgent(cluster.first.url, worker["api_key"], until_stopped) as agent:
        path = await conversation(http, tiny)
        body = {"content": "tell me"}
        async with http.stream("POST", f"{cluster.second.url}{path}", json=body) as answer:
            stream = events(answer)
            await wait_for_token(stream)
            cluster.redis.kill()
            await asyncio.to_thread(cluster.redis.start)
            rest = [event async for event in stream]
        assert rest[-1][0] == "error"
        assert "was lost between" in rest[-1][1]["detail"]
        await browser.next("resubscribe")
        await browser.watch("fleet")
        agent.script = echo
        assert text_of(await ask(http, cluster.second.url, path, "again")).endswith("again")
        paused = await http.post(f"/api/v1/workers/{worker['worker']['id']}/pause", json={})
        assert paused.is_success
        async with asyncio.timeout(PATIENCE):
            while (await browser.next("worker.state")).get("status") != "paused":
                pass
    await browser.socket.close()
    await http.delete(f"/api/v1/workers/{worker['worker']['id']}")


def test_a_job_goes_on_whichever_process_is_killed(
    cluster: Cluster, tiny: int, tmp_path: Path
) -> None:
    client = cluster.client()
    dataset = client.upload_dataset("Numbers", "numbers.jsonl", rows_jsonl(120))
    key = client.call("POST", "/api/v1/master-keys", {"name": "lab", "auto_name_prefix": "lab"})
    agent = Agent(tmp_path / "agent", tmp_path / "cache")
    agent.init(cluster.url, key["key"])
    agent.run("start")
    try:
        client.wait("/api/v1/workers/summary", lambda row: row["online"] == 1, seconds=60)
        body = {"dataset_id": dataset["id"], "model_id": tiny, "config": CONFIG}
        job = client.call("POST", "/api/v1/training-jobs", body)
        path = f"/api/v1/training-jobs/{job['id']}"
        client.call("POST", f"{path}/start")
        for step, victim in ((5, cluster.first), (25, cluster.second)):
            reached(client, path, step)
            victim.kill()
            reached(client, path, step + 10)
            victim.start()
        client = cluster.client()
        found = client.finish(path, seconds=280)
        assert found["attempt"] == 1, client.call("GET", f"{path}/events")
        check_complete(client, found, path)
        series = [
            client.http.get(f"{hub.url}{path}/metrics").json()
            for hub in (cluster.first, cluster.second)
        ]
        assert series[0] == series[1]
    finally:
        agent.run("stop")


def reached(client: HubClient, path: str, step: int) -> None:
    """Ask through nginx until the job is that far; what dies in between may cost an answer."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        try:
            if (client.call("GET", path)["progress"]["step"] or 0) >= step:
                return
        except (ParsynError, httpx.HTTPError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"step {step} was never reached")


def test_both_answer_many_at_once(cluster: Cluster) -> None:
    key = cluster.key()
    headers = {"Authorization": f"Bearer {key}"}

    def one(n: int) -> int:
        return httpx.get(
            f"{cluster.url}/api/v1/me", headers=headers, trust_env=False, timeout=30
        ).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(80))) == {200}
