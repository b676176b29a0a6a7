"""Uploads in parts: any order, resumed, replaced, checked, joined once; and who may not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Any

import pytest

from parsyn.clock import shifted
from parsyn.services import uploads
from parsyn.services.context import Context
from parsyn.store.uploads import Upload
from tests.hub.conftest import Person, deliver_effects
from tests.hub.test_accounts import setting

PART = 65_536
FILE = bytes(range(256)) * 700  # 179,200 bytes: two whole parts and a shorter one


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part(n: int, data: bytes = FILE) -> bytes:
    return data[(n - 1) * PART : n * PART]


async def start(who: Person, size: int = len(FILE), **more: Any) -> dict[str, Any]:
    answer = await who.post("/uploads", {"filename": "rows.jsonl", "size": size, **more})
    assert answer.status == 201, answer.body
    opened: dict[str, Any] = answer.body
    return opened


async def send(who: Person, upload_id: int, *numbers: int) -> None:
    for n in numbers:
        answer = await who.put(f"/uploads/{upload_id}/parts/{n}", part(n))
        assert answer.body == {"n": n, "size": len(part(n)), "sha256": digest(part(n))}


def stored(context: Context) -> list[str]:
    return [info.key for info in context.storage.list("uploads")]


@pytest.fixture(autouse=True)
def small_parts(context: Context) -> None:
    setting(context, "storage.part_bytes", PART)


async def test_parts_in_any_order_make_the_file(owner: Person, context: Context) -> None:
    opened = await start(owner, sha256=digest(FILE))
    assert (opened["part_size"], opened["parts_total"], opened["direct"]) == (PART, 3, False)
    await send(owner, opened["id"], 3, 1)
    resumed = (await owner.get(f"/uploads/{opened['id']}")).body
    assert [(p["n"], p["sha256"]) for p in resumed["received"]] == [
        (1, digest(part(1))),
        (3, digest(part(3))),
    ]
    await send(owner, opened["id"], 2)
    done = await owner.post(f"/uploads/{opened['id']}/complete")
    assert (done.status, done.body["status"], done.body["sha256"]) == (
        200,
        "complete",
        digest(FILE),
    )
    (key,) = stored(context)
    assert b"".join(context.storage.get(key)) == FILE


async def test_a_second_complete_answers_the_same(owner: Person) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 1, 2, 3)
    path = f"/uploads/{opened['id']}/complete"
    first = await owner.post(path)
    assert (await owner.post(path)).body == first.body
    assert (await owner.post(path, {"sha256": digest(FILE)})).status == 200
    other = await owner.post(path, {"sha256": digest(b"other")})
    assert (other.status, other.code) == (409, "digest_mismatch")


async def test_many_at_once(owner: Person, context: Context) -> None:
    opened = await start(owner, sha256=digest(FILE))
    await asyncio.gather(*(send(owner, opened["id"], n) for n in (1, 2, 3, 1, 2, 3)))
    path = f"/uploads/{opened['id']}/complete"
    answers = await asyncio.gather(*(owner.post(path) for _ in range(4)))
    assert [answer.status for answer in answers] == [200] * 4
    assert {answer.body["sha256"] for answer in answers} == {digest(FILE)}


async def test_missing_parts_are_named(owner: Person) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 2)
    answer = await owner.post(f"/uploads/{opened['id']}/complete")
    assert (answer.status, answer.code) == (409, "conflict")
    assert [e["loc"] for e in answer.body["errors"]] == [["parts", 1], ["parts", 3]]
    await send(owner, opened["id"], 1, 3)
    assert (await owner.post(f"/uploads/{opened['id']}/complete")).status == 200


async def test_a_wrong_digest_leaves_the_parts_to_be_sent_again(owner: Person) -> None:
    opened = await start(owner, sha256=digest(FILE))
    await send(owner, opened["id"], 1, 3)
    wrong = await owner.put(f"/uploads/{opened['id']}/parts/2", b"x" * PART)
    assert wrong.status == 200
    answer = await owner.post(f"/uploads/{opened['id']}/complete")
    assert (answer.status, answer.code) == (409, "digest_mismatch")
    assert digest(FILE) in answer.body["detail"]
    await send(owner, opened["id"], 2)
    assert (await owner.post(f"/uploads/{opened['id']}/complete")).status == 200


async def test_the_digest_may_come_with_complete(owner: Person) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 1, 2, 3)
    path = f"/uploads/{opened['id']}/complete"
    assert (await owner.post(path, {"sha256": digest(b"other")})).code == "digest_mismatch"
    assert (await owner.post(path, {"sha256": digest(FILE)})).body["sha256"] == digest(FILE)


@pytest.mark.parametrize(
    ("n", "data", "status", "code"),
    [
        (0, b"x", 422, "validation_failed"),
        (4, b"x", 422, "validation_failed"),
        (1, b"short", 422, "validation_failed"),
        (1, b"", 422, "validation_failed"),
        (1, b"x" * (PART + 1), 413, "too_large"),
        (3, part(1), 413, "too_large"),
    ],
)
async def test_parts_that_do_not_fit(
    owner: Person, context: Context, n: int, data: bytes, status: int, code: str
) -> None:
    opened = await start(owner)
    answer = await owner.put(f"/uploads/{opened['id']}/parts/{n}", data)
    assert (answer.status, answer.code) == (status, code)
    assert (await owner.get(f"/uploads/{opened['id']}")).body["received"] == []
    assert stored(context) == []


async def test_a_part_may_bring_its_digest(owner: Person, context: Context) -> None:
    opened = await start(owner)
    path = f"/uploads/{opened['id']}/parts/1"

    def header(data: bytes) -> dict[str, str]:
        text = base64.b64encode(hashlib.sha256(data).digest()).decode()
        return {"Content-Digest": f"sha-256=:{text}:"}

    wrong = await owner.put(path, part(1), headers=header(b"other"))
    assert (wrong.status, wrong.code) == (409, "digest_mismatch")
    assert stored(context) == []
    assert (await owner.put(path, part(1), headers=header(part(1)))).status == 200


async def test_a_part_that_is_replaced_leaves_nothing_behind(
    owner: Person, context: Context
) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 1)
    await send(owner, opened["id"], 1)
    deliver_effects(context)
    assert len(stored(context)) == 1
    assert len((await owner.get(f"/uploads/{opened['id']}")).body["received"]) == 1


async def test_a_part_that_nobody_noted_goes_with_its_upload(
    owner: Person, context: Context
) -> None:
    """As when the hub died between storing a part and noting it."""
    opened = await start(owner)
    with context.database.connection():
        folder = Upload.get_by_id(opened["id"]).key.rpartition("/")[0]
    context.storage.put(f"{folder}/parts/1-dead", [b"x"])
    await send(owner, opened["id"], 1)
    await owner.delete(f"/uploads/{opened['id']}")
    deliver_effects(context)
    assert stored(context) == []


async def test_an_empty_file(owner: Person, context: Context) -> None:
    for parts in ([], [1]):
        opened = await start(owner, size=0)
        assert opened["parts_total"] == 1
        await send(owner, opened["id"], *[])
        for n in parts:
            assert (await owner.put(f"/uploads/{opened['id']}/parts/{n}", b"")).status == 200
        done = await owner.post(f"/uploads/{opened['id']}/complete")
        assert (done.status, done.body["sha256"]) == (200, digest(b""))


async def test_abort_forgets_the_upload_once_and_takes_no_more_parts(owner: Person) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 1)
    path = f"/uploads/{opened['id']}"
    for _ in range(2):
        assert (await owner.delete(path)).status == 204
    aborted = (await owner.get(path)).body
    assert (aborted["status"], aborted["received"]) == ("aborted", [])
    assert (await owner.put(f"{path}/parts/1", part(1))).code == "invalid_state"
    assert (await owner.post(f"{path}/complete")).code == "invalid_state"


async def test_a_complete_upload_takes_no_more_parts(owner: Person) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 1, 2, 3)
    path = f"/uploads/{opened['id']}"
    await owner.post(f"{path}/complete")
    assert (await owner.put(f"{path}/parts/1", part(1))).code == "invalid_state"
    assert (await owner.delete(path)).code == "invalid_state"


@pytest.mark.parametrize("who", ["other", "viewer", "editor"])
async def test_someone_elses_upload_is_not_there(
    owner: Person, people: dict[str, Person], who: str
) -> None:
    stranger = people[who]
    opened = await start(owner)
    path = f"/uploads/{opened['id']}"
    answers = [
        await stranger.get(path),
        await stranger.put(f"{path}/parts/1", part(1)),
        await stranger.post(f"{path}/complete"),
        await stranger.delete(path),
    ]
    assert [answer.status for answer in answers] == [404] * 4
    assert (await owner.get(path)).body["received"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"filename": "a", "size": -1}, 422),
        ({"filename": "a", "size": 11 * 1024**3}, 413),
        ({"filename": "", "size": 1}, 422),
        ({"filename": "a\nb", "size": 1}, 422),
        ({"filename": "..", "size": 1}, 422),
        ({"filename": "a", "size": 1, "sha256": "short"}, 422),
        ({"filename": "a", "size": 1, "purpose": "malware"}, 422),
        ({"size": 1}, 422),
    ],
)
async def test_uploads_that_are_refused(owner: Person, body: dict[str, Any], status: int) -> None:
    assert (await owner.post("/uploads", body)).status == status


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\rows.jsonl", "rows.jsonl"),
        ("données.csv", "données.csv"),
    ],
)
async def test_only_the_name_of_a_path_is_kept(owner: Person, sent: str, kept: str) -> None:
    answer = await owner.post("/uploads", {"filename": sent, "size": 1})
    assert answer.body["filename"] == kept


async def test_the_same_key_opens_one_upload(owner: Person) -> None:
    body = {"filename": "rows.jsonl", "size": 10}
    key = {"Idempotency-Key": "k1"}
    first = await owner.post("/uploads", body, headers=key)
    second = await owner.post("/uploads", body, headers=key)
    assert (second.status, second.body["id"]) == (201, first.body["id"])
    other = await owner.post("/uploads", {**body, "size": 11}, headers=key)
    assert other.status == 422


async def test_what_nobody_goes_on_with_is_forgotten(owner: Person, context: Context) -> None:
    opened = await start(owner)
    await send(owner, opened["id"], 1)
    whole = await start(owner)
    await send(owner, whole["id"], 1, 2, 3)
    await owner.post(f"/uploads/{whole['id']}/complete")
    with shifted(uploads.KEPT_SECONDS - 60):
        assert context.database.write_sync(uploads.expire, context) == 0
    with shifted(uploads.KEPT_SECONDS + 60):
        assert context.database.write_sync(uploads.expire, context) == 2
        assert (await owner.get(f"/uploads/{opened['id']}")).body["status"] == "aborted"
        assert (await owner.get(f"/uploads/{whole['id']}")).status == 404
    with shifted(uploads.KEPT_SECONDS + uploads.FORGOTTEN_SECONDS + 120):
        context.database.write_sync(uploads.expire, context)
    with context.database.connection():
        assert Upload.select().count() == 0
