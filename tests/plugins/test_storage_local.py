"""The local storage: the contract, and what only a file system can do wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.testing import StorageContract
from parsyn_plugins.storage_local.joining import _append
from parsyn_plugins.storage_local.storage import LocalSettings, LocalStorage


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(LocalSettings(), tmp_path)


class TestContract(StorageContract):
    pass


def test_a_link_that_leads_out_is_not_followed(storage: LocalStorage, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (storage.root / "link").symlink_to(outside)
    (storage.root / "file").symlink_to(outside / "secret")
    for key in ("link/secret", "file"):
        with pytest.raises(ParsynError):
            storage.get(key)
    with pytest.raises(ParsynError):
        storage.put("link/new", [b"x"])
    assert list(storage.list("")) == []
    assert list(storage.list("link")) == []
    assert os.listdir(outside) == ["secret"]


def test_work_files_cannot_be_named(storage: LocalStorage) -> None:
    with pytest.raises(ParsynError, match="half-written"):
        storage.put(".work/x", [b"x"])


def test_an_object_cannot_be_a_folder_too(storage: LocalStorage) -> None:
    storage.put("a", [b"1"])
    with pytest.raises(ParsynError) as caught:
        storage.put("a/b", [b"2"])
    assert caught.value.code == ErrorCode.CONFLICT


def test_empty_folders_go_with_their_last_object(storage: LocalStorage) -> None:
    storage.put("a/b/c", [b"1"])
    storage.delete("a/b/c")
    assert os.listdir(storage.root) == [".work"]


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "full"), (errno.EROFS, "cannot be written")]
)
def test_a_full_or_locked_disk_says_so(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    storage.put("kept", [b"1"])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(ParsynError, match=said) as caught:
            storage.put("a", [b"x" * 100])
        with pytest.raises(ParsynError, match=said):
            storage.check()
    assert caught.value.code == ErrorCode.UNAVAILABLE
    assert os.listdir(storage.work) == []
    assert [info.key for info in storage.list("")] == ["kept"]


@pytest.mark.parametrize("consumed", [0, 1, 2, 3])
def test_a_joining_that_was_cut_short_goes_on(storage: LocalStorage, consumed: int) -> None:
    parts = [b"first " * 1000, b"second " * 999, b"third"]
    keys = [f"up/{n}" for n in range(3)]
    for key, data in zip(keys, parts, strict=True):
        storage.put(key, [data])
    _crash_after(storage, keys, consumed)
    info = storage.concatenate(keys, "done")
    assert info.sha256 == hashlib.sha256(b"".join(parts)).hexdigest()
    assert b"".join(storage.get("done")) == b"".join(parts)


def _crash_after(storage: LocalStorage, keys: list[str], consumed: int) -> None:
    """Leave what a process leaves that dies after `consumed` parts, half a part written."""
    from parsyn_plugins.storage_local import joining

    count = 0

    def dying(joined: Path, offset: int, part: Path) -> None:
        nonlocal count
        if count == consumed:
            if joined.exists():
                with joined.open("ab") as sink:
                    sink.write(b"half")
            raise KeyboardInterrupt
        count += 1
        _append(joined, offset, part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "_append", dying)
        if consumed == len(keys):
            patch.setattr(joining, "move_synced", lambda *args: (_ for _ in ()).throw(SystemExit))
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            storage.concatenate(keys, "done")


def test_the_same_joining_twice_answers_the_same(storage: LocalStorage) -> None:
    storage.put("up/1", [b"one"])
    storage.put("up/2", [b"two"])
    first = storage.concatenate(["up/1", "up/2"], "done")
    assert storage.concatenate(["up/1", "up/2"], "done") == first
    storage.delete("done")
    with pytest.raises(ParsynError):
        storage.concatenate(["up/1", "up/2"], "done")


def test_parts_sent_anew_are_joined_anew(storage: LocalStorage) -> None:
    for word in (b"old", b"newer"):
        storage.put("up/1", [word])
        storage.put("up/2", [word])
        assert storage.concatenate(["up/1", "up/2"], "done").size == 2 * len(word)
        assert b"".join(storage.get("done")) == word * 2


def test_joining_needs_no_second_copy(storage: LocalStorage) -> None:
    """The first part becomes the object by a rename: same inode, nothing copied."""
    storage.put("up/1", [b"x" * 100_000])
    storage.put("up/2", [b"y"])
    inode = (storage.root / "up/1").stat().st_ino
    storage.concatenate(["up/1", "up/2"], "done")
    assert (storage.root / "done").stat().st_ino == inode


def test_old_leftovers_go_and_joinings_stay(storage: LocalStorage) -> None:
    old = time.time() - 48 * 3600
    names = ["1.put", "2.check", "3.join", "3.json", "4.json"]
    for name in names:
        (storage.work / name).write_bytes(b"x")
        os.utime(storage.work / name, (old, old))
    (storage.work / "new.put").write_bytes(b"x")
    storage.check()
    assert sorted(os.listdir(storage.work)) == ["3.join", "3.json", "new.put"]


def test_a_folder_that_goes_between_two_looks_is_made_again(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = Path.mkdir, []

    def mkdir(self: Path, *args: Any, **more: Any) -> None:
        seen.append(self.name)
        if seen.count("b") == 1 and self.name == "b":
            raise FileExistsError(17, "File exists", str(self))
        real(self, *args, **more)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    storage.put("a/b/c", [b"here"])
    assert b"".join(storage.get("a/b/c")) == b"here"
    assert seen.count("b") == 2


def test_putting_and_deleting_side_by_side(storage: LocalStorage) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(100):
                storage.put(f"a/b/{name}", [name.encode()])
                storage.delete(f"a/b/{name}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(storage.list("")) == []
