"""The user of a case: starts jobs over the API, stops one now and then, and asks how they are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from parsyn.store.jobs import Job
from parsyn.wire.states import JOB_TERMINAL
from tests.faults.network import HubTransport

if TYPE_CHECKING:
    from tests.faults.case import Case


@dataclass
class Asked:
    """A job whose start the hub has confirmed, and whether the user then asked for its end."""

    id: int
    name: str
    steps: int
    stopped: bool = False


class Person:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.accepted: list[Asked] = []
        self.removed: set[str] = set()
        self.stopping: list[asyncio.Task[None]] = []
        self.http = httpx.AsyncClient(
            transport=HubTransport(case.network, "person"),
            base_url="http://hub.example/api/v1",
            headers={"Authorization": f"Bearer {case.furniture.api_key}"},
            trust_env=False,
        )

    async def work(self, count: int) -> None:
        luck = self.case.luck
        for n in range(count):
            await asyncio.sleep(luck.uniform(0, 15))
            await self._start(f"job {n}", steps=luck.choice([6, 12, 20]))
            if luck.random() < 0.12:
                stopping = self._stop(self.accepted[-1], luck.uniform(0, 120))
                self.stopping.append(asyncio.ensure_future(stopping))

    async def _start(self, name: str, steps: int) -> None:
        job_id = await self._create(name, steps)
        answer = await self.ask("POST", f"/training-jobs/{job_id}/start")
        # 409: an earlier try had taken effect, and only its answer was lost.
        assert answer.status_code in (200, 409), answer.text
        self.accepted.append(Asked(job_id, name, steps))

    async def _create(self, name: str, steps: int) -> int:
        body = {
            "name": name,
            "model_id": self.case.furniture.model_id,
            "dataset_id": self.case.furniture.dataset_id,
            "config": {"max_steps": steps, "save_steps": 3},
        }
        made = await self.ask("POST", "/training-jobs", body, key=name)
        if made.status_code == 201:
            return int(made.json()["id"])
        # The hub died between the effect and its answer, or before both; now one has to look.
        assert "See whether it took effect" in made.text, made.text
        found = (await self.ask("GET", f"/training-jobs?search={name}")).json()["items"]
        if found:
            return int(found[0]["id"])
        made = await self.ask("POST", "/training-jobs", body, key=f"{name} again")
        assert made.status_code == 201, made.text
        return int(made.json()["id"])

    async def _stop(self, job: Asked, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.case.tell(f"the user stops {job.name}")
        answer = await self.ask("POST", f"/training-jobs/{job.id}/cancel")
        job.stopped = job.stopped or answer.status_code == 200

    async def remove(self, name: str) -> None:
        """Delete a worker, whatever it does."""
        worker_id, _ = self.case.furniture.workers[name]
        self.removed.add(name)
        await self.ask("DELETE", f"/workers/{worker_id}")

    async def put(self, path: str, body: bytes) -> httpx.Response:
        return await self.ask("PUT", path, content=body)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
        content: bytes | None = None,
    ) -> httpx.Response:
        """Until there is an answer of the hub itself."""
        headers = {"Idempotency-Key": key} if key else {}
        what: dict[str, Any] = {"json": body} if content is None else {"content": content}
        while True:
            try:
                answer = await self.http.request(method, path, headers=headers, **what)
            except httpx.TransportError:
                await asyncio.sleep(1.0)
                continue
            busy = answer.status_code == 409 and "still runs" in answer.text
            if answer.status_code < 500 and not busy:
                return answer
            await asyncio.sleep(1.0)

    def all_ended(self) -> bool:
        """Asked of the database itself; who has started nothing yet has not ended."""
        with self.case.base.database.connection():
            rows = {row.id: row.status for row in Job.select(Job.id, Job.status)}
        return all(rows.get(job.id) in JOB_TERMINAL for job in self.accepted)
