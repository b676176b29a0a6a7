"""Files by their digest: fetched once, resumed, checked, assembled and, in the end, put away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.refs import FileRef
from parsyn.wire.worker import TaskKey, WantTicket
from parsyn_worker import transfer as transfers
from parsyn_worker.address import HubAddress
from parsyn_worker.cache import Cache, safe_path
from parsyn_worker.tickets import Tickets
from parsyn_worker.transfer import GaveUp, Scope, StaleAttempt, Transfer
from tests.worker.fake_hub import FakeHub

TASK = TaskKey(task_id=3, attempt=2)
SCOPE = Scope(task=TASK)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", 10_000)


@pytest_asyncio.fixture
async def transfer(
    hub: FakeHub, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Transfer]:
    """Its tickets come straight from the hub's storage, without a socket."""
    monkeypatch.setattr(transfers, "FIRST_WAIT", 0.001)

    async def ask(want: WantTicket) -> None:
        asyncio.get_running_loop().call_soon(tickets.answer, hub.objects.ticket(want))

    tickets = Tickets(ask)
    transfer = Transfer(HubAddress.parse(hub.url), tickets, cache)
    yield transfer
    await transfer.close()


async def test_fetched_once_and_only_once(hub: FakeHub, transfer: Transfer) -> None:
    file = hub.put_object("models/1/weights", b"x" * 3000)
    paths = await asyncio.gather(*(transfer.fetch(file, SCOPE) for _ in range(5)))
    assert {path.read_bytes() for path in paths} == {b"x" * 3000}
    assert len(hub.objects.requests) == 1


async def test_a_cut_download_goes_on_where_it_was(hub: FakeHub, transfer: Transfer) -> None:
    data = os.urandom(3 << 20)
    file = hub.put_object("models/1/weights", data)
    hub.objects.cut_next = [1 << 20, 1 << 20]
    seen: list[int] = []
    path = await transfer.fetch(file, SCOPE, seen.append)
    assert path.read_bytes() == data
    ranges = [headers.get("range") for _, _, headers in hub.objects.requests]
    assert ranges[0] is None
    assert len(ranges) == 3
    assert all(text and text.startswith("bytes=") for text in ranges[1:])
    assert seen == sorted(seen)
    assert seen[-1] == len(data)


async def test_another_digest_is_refused_and_not_kept(
    hub: FakeHub, transfer: Transfer, cache: Cache
) -> None:
    file = hub.put_object("models/1/weights", b"right")
    hub.objects.data[file.key] = b"wrong"
    with pytest.raises(ParsynError) as caught:
        await transfer.fetch(file, SCOPE)
    assert caught.value.code is ErrorCode.DIGEST_MISMATCH
    hub.objects.data[file.key] = b"right"
    assert (await transfer.fetch(file, SCOPE)).read_bytes() == b"right"


async def test_a_file_that_the_hub_does_not_give(hub: FakeHub, transfer: Transfer) -> None:
    file = hub.put_object("models/1/weights", b"data")
    del hub.objects.data[file.key]
    with pytest.raises(ParsynError, match="There is no such file"):
        await transfer.fetch(file, SCOPE)


async def test_an_empty_file(hub: FakeHub, transfer: Transfer, tmp_path: Path) -> None:
    assert (await transfer.fetch(hub.put_object("a/empty", b""), SCOPE)).read_bytes() == b""
    (tmp_path / "nothing").touch()
    stored = await transfer.store(TASK, "result/nothing", tmp_path / "nothing")
    assert hub.objects.data[stored.key] == b""


async def test_an_upload_is_whole_and_says_its_length(
    hub: FakeHub, transfer: Transfer, tmp_path: Path
) -> None:
    source = tmp_path / "adapter.safetensors"
    source.write_bytes(os.urandom(3_000_000))
    hub.objects.fail_next = [503, 401]
    seen: list[int] = []
    stored = await transfer.store(TASK, "checkpoints/5/adapter.safetensors", source, seen.append)
    assert stored.key == "tasks/3/2/checkpoints/5/adapter.safetensors"
    assert hub.objects.data[stored.key] == source.read_bytes()
    assert hub.objects.requests[-1][2]["content-length"] == "3000000"
    assert seen[-1] == 3_000_000


async def test_the_storage_says_stale(hub: FakeHub, transfer: Transfer, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data")
    hub.objects.stale.add(3)
    with pytest.raises(StaleAttempt):
        await transfer.store(TASK, "result/f", tmp_path / "f")


async def test_gives_up_on_a_hub_that_goes_on_refusing(
    hub: FakeHub, transfer: Transfer, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"data")
    hub.objects.ticket_error = "The quota is used up."
    with pytest.raises(GaveUp, match="quota"):
        await transfer.store(TASK, "result/f", tmp_path / "f")


async def test_a_folder_is_made_of_links(hub: FakeHub, transfer: Transfer, cache: Cache) -> None:
    files = [
        hub.put_object("m/config.json", b"{}", "config.json"),
        hub.put_object("m/w", b"weights", "sub/w.safetensors"),
    ]
    await transfer.fetch_all(files, SCOPE, lambda done, total: None)
    assert cache.assembled(files) is None
    folder = cache.assemble(files)
    assert cache.assembled(files) == folder
    assert cache.assemble(files) == folder
    assert (folder / "sub" / "w.safetensors").read_bytes() == b"weights"
    assert (folder / "config.json").stat().st_nlink == 2


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", "a\\b", "a\0b"])
def test_paths_that_leave_their_folder_are_refused(path: str) -> None:
    with pytest.raises(ParsynError):
        safe_path(path)


def test_a_digest_that_is_none_is_refused(cache: Cache) -> None:
    with pytest.raises(ParsynError):
        cache.find(FileRef(path="a", key="k", size=1, sha256="../../etc/passwd"))


async def test_what_was_used_longest_ago_goes_first(
    hub: FakeHub, transfer: Transfer, cache: Cache, tmp_path: Path
) -> None:
    files = {n: hub.put_object(f"f/{n}", n.encode() * 3000) for n in ("old", "used", "kept")}
    for file in files.values():
        await transfer.fetch(file, SCOPE)
    folder = cache.assemble([files["used"]])
    task = cache.assemble([files["kept"]], tmp_path / "task")
    for n, (path, age) in enumerate([(cache.blobs / files["old"].sha256, 9000), (folder, 5000)]):
        os.utime(path, (path.stat().st_mtime - age, path.stat().st_mtime - age - n))
    os.utime(cache.blobs / files["kept"].sha256, (1, 1))
    cache.make_room(1000)
    assert cache.find(files["old"]) is None
    cache.make_room(9000)
    assert not folder.exists()
    assert cache.find(files["used"]) is None
    # What a running task has in its folder stays, however old.
    assert cache.find(files["kept"]) is not None
    assert (task / "kept").exists()


async def test_what_was_used_a_moment_ago_stays(
    hub: FakeHub, transfer: Transfer, cache: Cache
) -> None:
    file = hub.put_object("f/1", b"x" * 9000)
    await transfer.fetch(file, SCOPE)
    cache.make_room(9000)
    assert cache.find(file) is not None
