"""The hub's processes on the virtual loop: the product's own code around stores that survive."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import httpx
import peewee

from parsyn import crash
from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.app import create_app
from parsyn.hub.socket_worker import WorkerSockets
from parsyn.jobs import datasets as dataset_jobs
from parsyn.jobs import outbox as outbox_jobs
from parsyn.jobs.process import use_context
from parsyn.plugin.storage import ObjectInfo
from parsyn.pubsub import Bus
from parsyn.queue import JobQueue
from parsyn.services.context import Context
from parsyn.store.database import Database
from parsyn.store.metrics import MetricsStore
from tests.faults.network import HubEnd, Network
from tests.faults.virtual import CURRENT, Process, VirtualLoop

JOBS: dict[str, Callable[..., Any]] = {
    "outbox.deliver": outbox_jobs.deliver,
    "datasets.validate": dataset_jobs.validate,
    "datasets.measure": dataset_jobs.measure,
}


class Redis:
    """Queue and channel. `flush` forgets the one, `down` loses whatever is said meanwhile."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop, self.down = loop, False
        self.jobs: deque[tuple[str, tuple[Any, ...], str | None]] = deque()
        self.buses: list[HubBus] = []

    def flush(self) -> None:
        self.jobs.clear()


class HubBus(Bus):
    """Events go round among the hub processes that listen, as far as Redis lives."""

    def __init__(self, redis: Redis, process: Process, witness: Callable[..., None]) -> None:
        super().__init__(None)
        self.room, self.process, self.witness = redis, process, witness
        self.origin = f"{process.name}-{len(redis.buses)}"
        redis.buses.append(self)
        self.heed: Callable[..., None] | None = None

    def publish(self, type: Any, topic: str, data: dict[str, Any]) -> None:
        self.witness(str(type), topic, data)
        for bus in self.room.buses:
            heard = bus is self or not self.room.down
            if bus.process.alive and bus.heed is not None and heard:
                context = bus.process.context()
                self.room.loop.call_soon(bus.heed, str(type), topic, data, context=context)

    async def listen(self, listener: Callable[..., None]) -> None:
        self.heed = listener
        await asyncio.Event().wait()


class HubQueue(JobQueue):
    """The product's queue as far as the hub sees it."""

    def __init__(self, redis: Redis) -> None:
        self.connected, self.room = True, redis

    def enqueue(self, function: str, *ids: Any, key: str | None = None) -> bool:
        if self.room.down:
            return False
        if key is None or not self.waits(key):
            self.room.jobs.append((function, ids, key))
        return True

    def waits(self, key: str) -> bool:
        return self.room.down or any(job[2] == key for job in self.room.jobs)

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass


class HubMetrics(MetricsStore):
    """The batching writer with the loop's timer for its thread."""

    def __init__(self, url: str, folder: Any, loop: VirtualLoop) -> None:
        super().__init__(url, folder)
        self.loop = loop
        self.batch: list[tuple[str, Any, Future[None]]] = []
        self.connection: Any = None

    def start(self) -> None:
        self.connection = self.connection or self._connect()

    def put(self, table: str, rows: Any) -> Future[None]:
        done: Future[None] = Future()
        if not self.batch:
            self.loop.call_later(self._commit_seconds, self._flush)
        self.batch.append((table, rows, done))
        return done

    def hurry(self) -> None:
        self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        if not self.batch:
            return
        batch, self.batch = self.batch, []
        self.connection = self._commit(self.connection, batch)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Troubles:
    """What the machine under the hub may do: a full disk, a database that is away."""

    def __init__(self, context: Context) -> None:
        self.disk_full = self.database_away = False
        self._put, self._connection = context.storage.put, context.database.connection
        context.storage.put = self.put  # type: ignore[method-assign]
        context.database.connection = self.connection  # type: ignore[method-assign]

    def put(self, key: str, chunks: Any) -> ObjectInfo:
        if self.disk_full:
            raise ParsynError(ErrorCode.UNAVAILABLE, "The disk of the storage folder is full.")
        return self._put(key, chunks)

    def connection(self) -> Any:
        process = CURRENT.get()
        if self.database_away and process and process.name.startswith(("hub", "jobs")):
            raise peewee.OperationalError("the database system is shutting down")
        return self._connection()

    def heal(self) -> None:
        self.disk_full = self.database_away = False


class HubProcess:
    """One `parsyn serve` without its server: sockets and requests are handed to it."""

    def __init__(self, name: str, base: Context, network: Network, redis: Redis) -> None:
        self.name, self.base, self.network, self.redis = name, base, network, redis
        self.loop = network.loop
        self.listening = False
        self.process = Process(name)
        self.starts = 0
        self.witness: Callable[..., None] = lambda *_: None
        self.asked: set[asyncio.Future[Any]] = set()
        network.hubs.append(self)

    async def start(self) -> None:
        """As a supervisor does it: again until it stands."""
        while not self.process.alive or not self.starts:
            with suppress(peewee.OperationalError, ParsynError):
                await self._start()
                return
            self.kill()
            await asyncio.sleep(2.0)

    async def _start(self) -> None:
        self.starts += 1
        self.process = Process(self.name, skew=self.process.skew, points={})
        self.process.on_death.append(self._died)
        database: Database = self.base.database
        self.metrics = HubMetrics(database.url, self.base.settings.data_dir, self.loop)
        self.bus = HubBus(self.redis, self.process, self.witness)
        self.context = Context(
            self.base.settings, database, self.metrics, self.base.plugins, self.base.storage,
            HubQueue(self.redis), self.bus, self.base.secret,
        )  # fmt: skip
        self.app = create_app(self.context)
        self.listening = False
        self.hub = self.app.extensions["parsyn"]
        self.sockets = WorkerSockets(self.hub, self.hub.parts["broker"])
        await self.loop.begin(self.process, self.app.startup())
        self.listening = True

    def _died(self) -> None:
        self.listening = False
        self.base.database.peewee._clear_commit_callbacks()
        self.metrics.close()
        if self.bus in self.redis.buses:
            self.redis.buses.remove(self.bus)
        self.network.ended(self.process)
        for future in self.asked:
            if not future.done():
                future.set_exception(ConnectionResetError())
        self.asked.clear()

    def kill(self) -> None:
        self.process.kill()

    async def shut_down(self) -> None:
        """SIGTERM: as `parsyn serve` does it."""
        if not self.process.alive:
            return
        self.listening = False
        life = self.hub.parts["lifecycle"]
        leaving = self.loop.begin(self.process, _leave(self.app, life))
        await asyncio.wait({leaving}, timeout=20)
        self.process.kill()

    def take_socket(self, end: HubEnd) -> None:
        if not self.process.alive:
            return
        end.handler = self.loop.begin(self.process, self.sockets.serve(end))  # type: ignore[arg-type]

    def answer(
        self, request: httpx.Request, body: bytes
    ) -> tuple[asyncio.Future[Any], asyncio.Task[Any]]:
        """(status, headers, body) of a request, and its handler, which is cancelled when the client
        goes away; broken when the process dies before."""
        future: asyncio.Future[Any] = self.loop.create_future()
        self.asked.add(future)
        future.add_done_callback(self.asked.discard)
        return future, self.loop.begin(self.process, self._answer(request, body, future))

    async def _answer(
        self, request: httpx.Request, body: bytes, future: asyncio.Future[Any]
    ) -> None:
        copy = httpx.Request(request.method, request.url, headers=request.headers, content=body)
        response = await httpx.ASGITransport(app=self.app).handle_async_request(copy)
        content = await response.aread()
        if not future.done():
            future.set_result((response.status_code, response.headers, content))


async def _leave(app: Any, life: Any) -> None:
    await life.drain()
    await app.shutdown()


class JobsProcess:
    """The RQ worker: takes what the queue holds, one job after the other."""

    def __init__(self, base: Context, redis: Redis, loop: VirtualLoop) -> None:
        self.base, self.redis, self.loop = base, redis, loop
        self.process = Process("jobs")

    def start(self) -> None:
        self.process = Process("jobs", points={})
        self.process.on_death.append(self.base.database.peewee._clear_commit_callbacks)
        self.metrics = HubMetrics(self.base.database.url, self.base.settings.data_dir, self.loop)
        bus = HubBus(self.redis, self.process, lambda *_: None)
        use_context(
            Context(
                self.base.settings, self.base.database, self.metrics, self.base.plugins,
                self.base.storage, HubQueue(self.redis), bus, self.base.secret,
            )
        )  # fmt: skip
        self.loop.begin(self.process, self._work())

    def kill(self) -> None:
        self.process.kill()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.2)
            while self.redis.jobs and not self.redis.down:
                function, ids, _ = self.redis.jobs.popleft()
                await loop.run_in_executor(None, _perform, function, ids)


def _perform(function: str, ids: tuple[Any, ...]) -> None:
    crash.point("job.before")
    try:
        JOBS[function](*ids)
    except Exception:  # RQ notes it and goes on
        return
    crash.point("job.after")
