"""What every storage must do, as tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.storage import Storage

MIB = 1 << 20
HOSTILE_KEYS = [
    "",
    "/etc/passwd",
    "../out",
    "a/../../out",
    "a/./b",
    "a//b",
    "a/",
    "nul\0byte",
    "line\nbreak",
    "back\\slash",
    "x" * 2000,
]


class StorageContract:
    """Subclass with a fixture `storage` that yields an empty storage."""

    def test_what_is_put_comes_back_with_its_digest(self, storage: Storage) -> None:
        info = storage.put("a/b.bin", [b"hello ", b"", b"world"])
        assert (info.key, info.size) == ("a/b.bin", 11)
        assert info.sha256 == hashlib.sha256(b"hello world").hexdigest()
        assert b"".join(storage.get("a/b.bin")) == b"hello world"
        assert storage.stat("a/b.bin").size == 11

    def test_an_empty_object_is_an_object(self, storage: Storage) -> None:
        assert storage.put("empty", []).size == 0
        assert list(storage.get("empty")) == []

    def test_put_replaces(self, storage: Storage) -> None:
        storage.put("a", [b"old and long"])
        storage.put("a", [b"new"])
        assert b"".join(storage.get("a")) == b"new"

    def test_a_put_that_fails_leaves_what_was(self, storage: Storage) -> None:
        def broken() -> Iterator[bytes]:
            yield b"half"
            raise RuntimeError("the sender went away")

        storage.put("a", [b"whole"])
        for key in ("a", "b"):
            with pytest.raises(RuntimeError, match="went away"):
                storage.put(key, broken())
        assert b"".join(storage.get("a")) == b"whole"
        assert [info.key for info in storage.list("")] == ["a"]

    @pytest.mark.parametrize(
        ("offset", "length"), [(0, 5), (3, None), (MIB - 1, 3), (2 * MIB, 9), (9 * MIB, None)]
    )
    def test_ranges(self, storage: Storage, offset: int, length: int | None) -> None:
        data = bytes(range(256)) * 8192 + b"tail"
        storage.put("big", [data[i : i + 70000] for i in range(0, len(data), 70000)])
        chunks = list(storage.get("big", offset, length))
        end = None if length is None else offset + length
        assert b"".join(chunks) == data[offset:end]
        assert all(0 < len(chunk) <= MIB for chunk in chunks)

    def test_missing_keys_are_not_found(self, storage: Storage) -> None:
        storage.put("folder/a", [b"1"])
        for key in ("nothing", "folder", "folder/a/b"):
            with pytest.raises(ParsynError) as caught:
                storage.stat(key)
            assert caught.value.code == ErrorCode.NOT_FOUND
            with pytest.raises(ParsynError) as caught:
                storage.get(key)
            assert caught.value.code == ErrorCode.NOT_FOUND
            with pytest.raises(ParsynError) as caught, storage.as_file(key):
                pass
            assert caught.value.code == ErrorCode.NOT_FOUND

    def test_delete_is_idempotent_and_exact(self, storage: Storage) -> None:
        storage.put("x/1", [b"1"])
        storage.put("x/10", [b"10"])
        for _ in range(2):
            storage.delete("x/1")
        storage.delete("x")
        assert [info.key for info in storage.list("x")] == ["x/10"]
        storage.put("x/1", [b"again"])
        assert storage.stat("x/1").size == 5

    def test_list_is_below_a_folder_and_in_key_order(self, storage: Storage) -> None:
        keys = ["d/1/a", "d/1-x", "d/1/b/c", "d/10", "d/2", "e", "d.txt"]
        for key in keys:
            storage.put(key, [key.encode()])
        assert [info.key for info in storage.list("")] == sorted(keys)
        assert [info.key for info in storage.list("d/1")] == ["d/1/a", "d/1/b/c"]
        assert [info.key for info in storage.list("d/1/")] == ["d/1/a", "d/1/b/c"]
        assert [info.size for info in storage.list("d/1")] == [5, 7]
        assert list(storage.list("nothing")) == []

    def test_as_file_is_a_local_path(self, storage: Storage) -> None:
        storage.put("a", [b"on disk"])
        with storage.as_file("a") as path:
            assert path.read_bytes() == b"on disk"

    def test_concatenate_joins_in_order_and_removes_the_parts(self, storage: Storage) -> None:
        parts = {"up/3": b"one " * 9, "up/1": b"", "up/2": b"two"}
        for key, data in parts.items():
            storage.put(key, [data])
        info = storage.concatenate(list(parts), "done")
        whole = b"".join(parts.values())
        assert (info.key, info.size) == ("done", len(whole))
        assert info.sha256 == hashlib.sha256(whole).hexdigest()
        assert b"".join(storage.get("done")) == whole
        assert [item.key for item in storage.list("")] == ["done"]

    def test_concatenate_with_a_missing_part_changes_nothing(self, storage: Storage) -> None:
        storage.put("up/1", [b"one"])
        with pytest.raises(ParsynError) as caught:
            storage.concatenate(["up/1", "up/2"], "done")
        assert caught.value.code == ErrorCode.NOT_FOUND
        assert [(item.key, item.size) for item in storage.list("")] == [("up/1", 3)]

    @pytest.mark.parametrize("key", HOSTILE_KEYS)
    def test_hostile_keys_are_refused(self, storage: Storage, key: str) -> None:
        with pytest.raises(ParsynError) as caught:
            storage.put(key, [b"x"])
        assert caught.value.code == ErrorCode.MALFORMED
        for refuse in (storage.stat, storage.delete, storage.get):
            with pytest.raises(ParsynError):
                refuse(key)

    def test_check_passes_when_bytes_can_be_stored(self, storage: Storage) -> None:
        storage.check()
        assert list(storage.list("")) == []
