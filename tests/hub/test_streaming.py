"""Large bodies: the hub takes no more of a body than it can put away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from quart import Quart

from parsyn.hub import streaming
from parsyn.hub.streaming import HIGH_WATER, ascii_name
from parsyn.plugin.storage import ObjectInfo
from parsyn.services.context import Context
from tests.hub.conftest import Person
from tests.hub.test_accounts import setting

CHUNK = 1 << 16
CHUNKS = 512


class SlowStorage:
    """Takes nothing until told to, then everything."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.go_on = threading.Event()
        self.failure: BaseException | None = None
        self.ended = threading.Event()

    def put(self, key: str, chunks: Iterable[bytes]) -> ObjectInfo:
        assert self.go_on.wait(30)
        try:
            info: ObjectInfo = self.storage.put(key, chunks)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self.ended.set()
        return info

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)


class Sender:
    """The ASGI side of a client that sends as fast as it is let."""

    def __init__(self, leaves_after: int = CHUNKS, stays: bool = False) -> None:
        self.leaves_after = leaves_after
        self.stays = stays
        self.sent = 0
        self.moved = asyncio.Event()
        self.messages: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        if self.sent == self.leaves_after:
            if self.sent == CHUNKS or self.stays:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        self.sent += 1
        self.moved.set()
        return {"type": "http.request", "body": b"x" * CHUNK, "more_body": self.sent < CHUNKS}

    async def send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    async def is_held_back(self) -> None:
        """Return once nothing was taken for a while."""
        while True:
            self.moved.clear()
            try:
                await asyncio.wait_for(self.moved.wait(), 0.3)
            except TimeoutError:
                return


@pytest.fixture
def slow(context: Context) -> SlowStorage:
    storage = SlowStorage(context.storage)
    context.storage = storage  # type: ignore[assignment]
    return storage


async def put_part(
    app: Quart, owner: Person, context: Context, sender: Sender, chunks: int = CHUNKS
) -> asyncio.Task[None]:
    """Begin to send a part of so many chunks, whatever the sender then does."""
    setting(context, "storage.part_bytes", CHUNK * chunks)
    body = {"filename": "big", "size": CHUNK * chunks}
    upload_id = (await owner.post("/uploads", body)).body["id"]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "PUT",
        "scheme": "http",
        "path": f"/api/v1/uploads/{upload_id}/parts/1",
        "raw_path": b"",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", f"Bearer {owner.key}".encode()), (b"host", b"hub")],
        "client": ("127.0.0.1", 1),
        "server": ("hub", 80),
    }
    return asyncio.create_task(app(scope, sender.receive, sender.send))  # type: ignore[arg-type]


async def test_a_fast_sender_waits_for_a_slow_storage(
    app: Quart, owner: Person, context: Context, slow: SlowStorage
) -> None:
    sender = Sender()
    running = await put_part(app, owner, context, sender)
    await sender.is_held_back()
    assert sender.sent * CHUNK <= HIGH_WATER + CHUNK
    slow.go_on.set()
    await running
    assert sender.messages[0]["status"] == 200
    assert sender.sent == CHUNKS


async def test_a_sender_that_goes_away_leaves_nothing_behind(
    app: Quart, owner: Person, context: Context, slow: SlowStorage
) -> None:
    sender = Sender(leaves_after=CHUNKS // 2)
    running = await put_part(app, owner, context, sender)
    slow.go_on.set()
    await running
    assert await asyncio.to_thread(slow.ended.wait, 10)
    assert slow.failure is not None
    assert list(context.storage.list("uploads")) == []


async def test_a_sender_that_does_not_stop_is_refused_on_the_way(
    app: Quart, owner: Person, context: Context
) -> None:
    sender = Sender()
    await (await put_part(app, owner, context, sender, chunks=4))
    assert sender.messages[0]["status"] == 413
    assert sender.sent < CHUNKS
    assert list(context.storage.list("uploads")) == []


async def test_a_sender_that_falls_silent_is_given_up(
    app: Quart, owner: Person, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SILENCE_SECONDS", 0.2)
    sender = Sender(leaves_after=2, stays=True)
    await (await put_part(app, owner, context, sender))
    assert sender.messages[0]["status"] == 504
    assert list(context.storage.list("uploads")) == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("rows.jsonl", "rows.jsonl"),
        ('a"\r\nSet-Cookie: x', "a___Set-Cookie_ x"),
        ("données.csv", "donn_es.csv"),
        ("..", "download"),
        ("数据", "__"),
    ],
)
def test_names_in_headers(name: str, safe: str) -> None:
    assert ascii_name(name) == safe
