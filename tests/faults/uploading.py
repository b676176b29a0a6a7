"""A file in parts to a hub that dies in between: it comes out whole, with the digest promised."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from parsyn.store.uploads import Upload
from tests.faults.case import Case
from tests.faults.hub_process import HubProcess, JobsProcess, Redis, Troubles
from tests.faults.invariants import Doubled, Lost, Wrong
from tests.faults.network import Network
from tests.faults.people import Person
from tests.faults.witness import Witness

POINTS = ("part.stored", "part.recorded", "join.before", "join.after", "commit.before",
          "commit.after", "outbox.write")  # fmt: skip
PART = 65536


class UploadCase(Case):
    """`seed` draws the size, the points at which the hub dies, and how the network is."""

    async def _drama(self) -> None:
        luck = self.luck
        self.network = Network(self.loop, self.seed)
        self.redis = Redis(self.loop)
        self.troubles = Troubles(self.base)
        self.hubs = [HubProcess("hub", self.base, self.network, self.redis)]
        self.hubs[0].witness = self.witness = Witness()
        await self.hubs[0].start()
        self.jobs = JobsProcess(self.base, self.redis, self.loop)
        self.jobs.start()
        self.agents, self.harmless = [], False
        self.person = Person(self)
        self.network.link("person").loses = luck.choice([0.0, 0.2, 0.5])
        self.network.link("person").twice = luck.choice([0.0, 0.2])
        self.body = luck.randbytes(luck.choice([0, 1, PART, PART + 1, 3 * PART - 7]))
        deaths = asyncio.ensure_future(self._die_now_and_then())
        await asyncio.wait_for(self._upload(), 3600)
        deaths.cancel()
        self.network.link("person").heal()
        if not self.hubs[0].process.alive:
            await self.hubs[0].start()
        await self._settle()

    async def _die_now_and_then(self) -> None:
        hub = self.hubs[0]
        for _ in range(self.luck.randint(1, 4)):
            point = self.luck.choice(POINTS)
            hub.process.points[point] = self.luck.randint(1, 3)
            self.tell(f"to die at {point}:{hub.process.points[point]}")
            while hub.process.alive:
                await asyncio.sleep(0.5)
            self.tell("the hub died")
            await asyncio.sleep(self.luck.uniform(0, 5))
            await hub.start()

    async def _upload(self) -> None:
        digest = hashlib.sha256(self.body).hexdigest()
        announced = {"filename": "rows.jsonl", "size": len(self.body), "purpose": "dataset",
                     "sha256": digest}  # fmt: skip
        made = await self._announce(announced)
        parts = [self.body[at : at + PART] for at in range(0, len(self.body), PART)]
        while True:
            await self._send(made["id"], parts)
            done = await self.person.ask(
                "POST", f"/uploads/{made['id']}/complete", {"sha256": digest}
            )
            self.tell(f"complete: {done.status_code}")
            if done.status_code == 200:
                return
            await asyncio.sleep(1.0)

    async def _announce(self, announced: dict[str, Any]) -> dict[str, Any]:
        for key in ("upload", "upload again"):
            made = await self.person.ask("POST", "/uploads", announced, key=key)
            if made.status_code == 201:
                found: dict[str, Any] = made.json()
                return found
        raise Lost(made.text)

    async def _send(self, upload_id: int, parts: list[bytes]) -> None:
        held = await self.person.ask("GET", f"/uploads/{upload_id}")
        received = {part["n"] for part in held.json()["received"]}
        for n, part in enumerate(parts, 1):
            if n not in received:
                await self.person.put(f"/uploads/{upload_id}/parts/{n}", part)

    def check(self) -> None:
        with self.base.database.connection():
            rows = list(Upload.select().where(Upload.status == "complete"))
        if len(rows) != 1:
            raise (Doubled if rows else Lost)(f"{len(rows)} uploads are complete")
        body = b"".join(self.base.storage.get(rows[0].key))
        digest = hashlib.sha256(self.body).hexdigest()
        if (body, rows[0].sha256, rows[0].size) != (self.body, digest, len(self.body)):
            raise Wrong("the file is not what was promised")
