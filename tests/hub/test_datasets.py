"""Datasets: from a file to rows that can be trained on; and who may not."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from quart.datastructures import FileStorage

from parsyn.clock import shifted
from parsyn.errors import ErrorCode, ParsynError
from parsyn.services import datasets, validation
from parsyn.services.context import Context
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.uploads import Upload
from parsyn.wire.states import JobStatus
from tests.hub.conftest import Answer, Person, deliver_effects, run_jobs

ROWS = [
    {"messages": [{"role": "user", "content": f"Q{n}"}, {"role": "assistant", "content": "A"}]}
    for n in range(40)
]
FILE = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


async def send_file(
    who: Person,
    data: bytes,
    filename: str = "rows.jsonl",
    headers: dict[str, str] | None = None,
    **form: Any,
) -> Answer:
    """The small-file form."""
    files = {"file": FileStorage(io.BytesIO(data), filename=filename)}
    form = {"name": "rows", **form}
    return await who.ask("POST", "/datasets", files=files, form=form, headers=headers or {})


async def make(
    who: Person, context: Context, data: bytes = FILE, filename: str = "rows.jsonl", **form: Any
) -> dict[str, Any]:
    """A dataset after its jobs have run."""
    made = await send_file(who, data, filename, **form)
    assert made.status == 201, made.body
    run_jobs(context)
    found: dict[str, Any] = (await who.get(f"/datasets/{made.body['id']}")).body
    return found


async def test_the_sample_is_a_dataset_like_any_other(owner: Person, context: Context) -> None:
    made = await owner.ask("POST", "/datasets/sample")
    assert made.status == 201
    run_jobs(context)
    ready = (await owner.get(f"/datasets/{made.body['id']}")).body
    assert (ready["status"], ready["schema_kind"], ready["row_count"]) == ("ready", "messages", 200)
    assert ready["stats"]["duplicates"]["exact"] == 0


async def test_a_small_file_becomes_a_dataset(owner: Person, context: Context) -> None:
    made = await send_file(owner, FILE)
    assert (made.status, made.body["status"]) == (201, "validating")
    assert (made.body["size"], made.body["filename"]) == (len(FILE), "rows.jsonl")
    early = await owner.get(f"/datasets/{made.body['id']}/report")
    assert (early.status, early.code) == (409, "invalid_state")
    run_jobs(context)
    ready = (await owner.get(f"/datasets/{made.body['id']}")).body
    told = ("status", "file_format", "schema_kind", "row_count", "bad_row_count", "needs_mapping")
    assert [ready[name] for name in told] == ["ready", "jsonl", "messages", 40, 0, False]
    assert ready["columns"] == ["messages"]
    assert ready["stats_status"] == "ready"
    stats = (await owner.get(f"/datasets/{made.body['id']}/stats")).body
    assert (stats["rows"], stats["duplicates"]["exact"]) == (40, 0)
    assert stats["tokens"]["tokenizer"] == "characters/4"
    report = (await owner.get(f"/datasets/{made.body['id']}/report")).body
    assert report == {"summary": ready["summary"], "problems": []}


async def test_the_same_key_makes_one_dataset(owner: Person, context: Context) -> None:
    upload = (await owner.post("/uploads", {"filename": "a.jsonl", "size": len(FILE)})).body
    await owner.put(f"/uploads/{upload['id']}/parts/1", FILE)
    await owner.post(f"/uploads/{upload['id']}/complete")
    body, key = {"name": "rows", "upload_id": upload["id"]}, {"Idempotency-Key": "once"}
    answers = [await owner.post("/datasets", body, headers=key) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 201]
    assert answers[0].body["id"] == answers[1].body["id"]
    form = await send_file(owner, FILE, headers={"Idempotency-Key": "form"})
    assert form.status == 201
    with context.database.connection():
        assert Dataset.select().count() == 2


async def test_an_upload_in_parts_becomes_a_dataset(owner: Person, context: Context) -> None:
    body = {"filename": "rows.jsonl.gz", "size": len(gzip.compress(FILE))}
    upload = (await owner.post("/uploads", body)).body
    early = await owner.post("/datasets", {"name": "rows", "upload_id": upload["id"]})
    assert (early.status, early.body["errors"][0]["loc"]) == (422, ["upload_id"])
    await owner.put(f"/uploads/{upload['id']}/parts/1", gzip.compress(FILE))
    await owner.post(f"/uploads/{upload['id']}/complete")
    made = await owner.post("/datasets", {"name": "rows", "upload_id": upload["id"]})
    assert made.status == 201
    run_jobs(context)
    ready = (await owner.get(f"/datasets/{made.body['id']}")).body
    assert (ready["status"], ready["compression"], ready["row_count"]) == ("ready", "gz", 40)


@pytest.mark.parametrize(
    ("data", "filename", "form", "code", "words"),
    [
        (b"", "rows.jsonl", {}, "empty_file", "empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(60), "rows.jsonl", {}, "unsupported_file", "PNG"),
        ("caf\u00e9 ".encode("utf-16") * 9, "rows.csv", {}, "wrong_encoding", "UTF-16"),
        (FILE, "rows.jsonl", {"format": "csv"}, "format_mismatch", "jsonl"),
        (FILE, "rows.jsonl", {"mapping": '{"prompt": "nope"}'}, "bad_mapping", "nope"),
        (b'{"text": "a"}\n{"text": \n' * 9, "rows.jsonl", {}, "invalid_json", "line 2"),
    ],
)
async def test_files_that_are_refused_say_why(
    owner: Person, context: Context, data: bytes, filename: str, form: Any, code: str, words: str
) -> None:
    found = await make(owner, context, data, filename, **form)
    assert (found["status"], found["stats_status"]) == ("invalid", "none")
    assert words in found["summary"]
    report = (await owner.get(f"/datasets/{found['id']}/report")).body
    assert code in [problem["code"] for problem in report["problems"]]
    assert found["problems_count"] >= 1
    assert (await owner.get(f"/datasets/{found['id']}/stats")).status == 409


async def test_a_few_bad_rows_are_left_out_unless_strict(owner: Person, context: Context) -> None:
    data = FILE + b'{"messages": []}\n'
    found = await make(owner, context, data)
    assert (found["status"], found["row_count"], found["bad_row_count"]) == ("ready", 40, 1)
    report = (await owner.get(f"/datasets/{found['id']}/report")).body
    (problem,) = report["problems"]
    assert (problem["row"], problem["line"], problem["count"]) == (41, 41, 1)
    changed = await owner.patch(f"/datasets/{found['id']}", {"strict": True})
    assert changed.body["status"] == "validating"
    run_jobs(context)
    assert (await owner.get(f"/datasets/{found['id']}")).body["status"] == "invalid"


async def test_unknown_columns_ask_for_a_mapping(owner: Person, context: Context) -> None:
    data = b"frage,antwort\nWas?,Das.\nWer?,Die.\n"
    found = await make(owner, context, data, "rows.csv")
    assert (found["status"], found["needs_mapping"], found["schema_kind"]) == (
        "ready",
        True,
        "unknown",
    )
    path = f"/datasets/{found['id']}"
    suggested = found["suggestions"][0]
    assert suggested["schema_kind"] == "prompt_completion"
    assert suggested["mapping"] == {"prompt": "frage", "completion": "antwort"}
    assert suggested["reason"] == '"frage" asks and "antwort" answers'
    wrong = await owner.patch(path, {"mapping": {"prompt": "frage", "completion": "nope"}})
    assert (wrong.status, wrong.body["errors"][0]["loc"]) == (422, ["mapping", "completion"])
    assert "frage, antwort" in wrong.body["detail"]
    mapping = {"prompt": "frage", "completion": "antwort"}
    assert (await owner.patch(path, {"mapping": mapping})).body["status"] == "validating"
    run_jobs(context)
    mapped = (await owner.get(path)).body
    assert (mapped["schema_kind"], mapped["needs_mapping"]) == ("prompt_completion", False)
    assert (mapped["mapping"], mapped["stats_status"]) == (mapping, "ready")
    assert mapped["suggestions"] == []


async def test_preview_shows_rows_raw_and_as_messages(owner: Person, context: Context) -> None:
    found = await make(owner, context, FILE + b"{broken\n")
    path = f"/datasets/{found['id']}/preview"
    shown = (await owner.get(path, query_string={"offset": 39, "limit": 5})).body
    assert (shown["total"], shown["template"]) == (41, "none")
    first, second = shown["items"]
    assert (first["row"], first["raw"]) == (40, ROWS[39])
    assert first["messages"][1] == {"role": "assistant", "content": "A"}
    assert (second["row"], second["raw"]) == (41, None)
    assert second["problem"]
    assert (await owner.get(path, query_string={"limit": 101})).status == 422
    assert (await owner.get(path, query_string={"model_id": 77})).status == 422
    assert (await owner.get(path, query_string={"train_on": "luck"})).status == 422


@pytest.mark.parametrize(
    ("asked", "status", "span"),
    [
        (None, 200, slice(None)),
        ("bytes=0-9", 206, slice(0, 10)),
        ("bytes=100-", 206, slice(100, None)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=0-5,7-9", 200, slice(None)),
        ("lines=1-2", 200, slice(None)),
    ],
)
async def test_downloads_honour_a_range(
    owner: Person, asked: str | None, status: int, span: slice
) -> None:
    made = (await send_file(owner, FILE)).body
    headers = {"Range": asked} if asked else {}
    answer = await owner.get(f"/datasets/{made['id']}/download", headers=headers)
    assert (answer.status, answer.raw) == (status, FILE[span])
    assert int(answer.headers["Content-Length"]) == len(FILE[span])
    assert answer.headers["ETag"] == f'"{made["sha256"]}"'
    assert 'filename="rows.jsonl"' in answer.headers["Content-Disposition"].replace(
        "=rows.jsonl", '="rows.jsonl"'
    )


async def test_a_range_beyond_the_file_is_refused(owner: Person) -> None:
    made = (await send_file(owner, FILE)).body
    path = f"/datasets/{made['id']}/download"
    answer = await owner.get(path, headers={"Range": f"bytes={len(FILE)}-"})
    assert (answer.status, answer.code) == (416, "range_not_satisfiable")
    changed = await owner.get(path, headers={"Range": "bytes=0-1", "If-Range": '"other"'})
    assert (changed.status, len(changed.raw)) == (200, len(FILE))


async def test_a_dataset_in_use_is_not_deleted(owner: Person, context: Context) -> None:
    made = (await send_file(owner, FILE)).body
    path = f"/datasets/{made['id']}"
    with context.database.transaction():
        job = Job.create(
            user=owner.user_id,
            project=owner.project_id,
            kind="training",
            name="tune",
            status=JobStatus.QUEUED,
            validation_dataset=made["id"],
        )
    used = await owner.delete(path)
    assert (used.status, used.code) == (409, "invalid_state")
    assert f"job {job.id}" in used.body["detail"]
    with context.database.transaction():
        Job.update(status=JobStatus.COMPLETED).where(Job.id == job.id).execute()
    assert (await owner.delete(path)).status == 204
    assert (await owner.get(path)).status == 404


async def test_the_file_goes_with_the_last_dataset_that_has_it(
    owner: Person, context: Context
) -> None:
    made = (await send_file(owner, FILE)).body
    with context.database.connection():
        row = Dataset.get_by_id(made["id"])
    with context.database.connection():
        upload_id = Upload.get(Upload.key == row.key).id
    twin = await owner.post("/datasets", {"name": "twin", "upload_id": upload_id})
    await owner.delete(f"/datasets/{made['id']}")
    deliver_effects(context)
    assert (await owner.get(f"/datasets/{twin.body['id']}/download")).raw == FILE
    await owner.delete(f"/datasets/{twin.body['id']}")
    deliver_effects(context)
    assert list(context.storage.list("uploads")) == []
    assert (await owner.get(f"/uploads/{upload_id}")).status == 404


async def test_lists_filter_and_page(owner: Person, context: Context) -> None:
    ids = [(await send_file(owner, FILE, name=name)).body["id"] for name in ("one", "two")]
    with context.database.transaction():
        Dataset.update(status="ready").where(Dataset.id == ids[0]).execute()

    async def listed(**query: Any) -> list[int]:
        body = (await owner.get("/datasets", query_string=query)).body
        return [item["id"] for item in body["items"]]

    assert await listed() == ids[::-1]
    assert await listed(limit=1, offset=1) == ids[:1]
    assert await listed(status="ready") == ids[:1]
    assert await listed(q="tw") == ids[1:]
    assert await listed(project_id=owner.project_id) == ids[::-1]
    assert await listed(project_id=9999) == []
    assert (await owner.get("/datasets", query_string={"status": "odd"})).status == 422


# --- who may ---------------------------------------------------------------------------------


async def test_nobody_makes_a_dataset_of_anothers_upload_or_in_anothers_project(
    people: dict[str, Person],
) -> None:
    owner, other, viewer = people["owner"], people["other"], people["viewer"]
    upload = (await owner.post("/uploads", {"filename": "a", "size": 0})).body
    await owner.post(f"/uploads/{upload['id']}/complete")
    body = {"name": "x", "upload_id": upload["id"]}
    stolen = await other.post("/datasets", body)
    assert (stolen.status, stolen.body["errors"][0]["loc"]) == (422, ["upload_id"])
    foreign = await send_file(other, FILE, project_id=str(owner.project_id))
    assert (foreign.status, foreign.body["errors"][0]["loc"]) == (422, ["project_id"])
    assert (await send_file(viewer, FILE, project_id=str(owner.project_id))).status == 403
    wrong = await owner.post("/uploads", {"filename": "a", "size": 0, "purpose": "model"})
    await owner.post(f"/uploads/{wrong.body['id']}/complete")
    assert (
        await owner.post("/datasets", {"name": "x", "upload_id": wrong.body["id"]})
    ).status == 422


@pytest.mark.parametrize(
    ("form", "loc"),
    [
        ({"name": ""}, ["name"]),
        ({"nme": "x"}, ["nme"]),
        ({"mapping": "{"}, ["mapping"]),
        ({"format": "xlsx"}, ["format"]),
        ({"project_id": "x"}, ["project_id"]),
    ],
)
async def test_forms_that_are_refused_leave_no_bytes(
    owner: Person, context: Context, form: dict[str, str], loc: list[str]
) -> None:
    answer = await send_file(owner, FILE, **form)
    assert (answer.status, answer.body["errors"][0]["loc"]) == (422, loc)
    assert list(context.storage.list("uploads")) == []


async def test_a_form_without_a_file(owner: Person) -> None:
    answer = await owner.ask("POST", "/datasets", form={"name": "x"}, files={})
    assert answer.status in (415, 422)


# --- jobs that are late or lost --------------------------------------------------------------


async def test_what_an_older_validation_finds_is_ignored(owner: Person, context: Context) -> None:
    found = await make(owner, context)
    with context.database.connection():
        old = Dataset.get_by_id(found["id"])
    await owner.patch(f"/datasets/{found['id']}", {"strict": True})
    validation.validate(context, old.id, old.revision)
    assert (await owner.get(f"/datasets/{found['id']}")).body["status"] == "validating"
    run_jobs(context)
    assert (await owner.get(f"/datasets/{found['id']}")).body["status"] == "ready"


async def test_a_lost_job_is_asked_for_again(owner: Person, context: Context) -> None:
    made = (await send_file(owner, FILE)).body
    assert context.database.write_sync(datasets.find_lost, context) == 0, "it is fresh"
    with shifted(datasets.LEASE_SECONDS + 1):
        assert context.database.write_sync(datasets.find_lost, context) == 0, "it still waits"
    context.queue.redis.flushdb()
    with shifted(3 * datasets.LEASE_SECONDS):
        assert context.database.write_sync(datasets.find_lost, context) == 1
        run_jobs(context)
    assert (await owner.get(f"/datasets/{made['id']}")).body["status"] == "ready"


async def test_a_file_whose_check_always_dies_is_given_up(owner: Person, context: Context) -> None:
    made = (await send_file(owner, FILE)).body
    for round in range(1, datasets.MOST_TRIES + 1):
        context.queue.redis.flushdb()
        with shifted(2 * round * datasets.LEASE_SECONDS):
            context.database.write_sync(datasets.find_lost, context)
    found = (await owner.get(f"/datasets/{made['id']}")).body
    assert found["status"] == "invalid"
    assert "died" in found["summary"]


async def test_trouble_of_this_machine_is_no_fault_of_the_file(
    owner: Person, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await send_file(owner, FILE)).body

    def killed(*_: Any, **__: Any) -> None:
        raise ParsynError(ErrorCode.UNAVAILABLE, "out of memory")

    monkeypatch.setattr(validation, "validate_file", killed)
    with pytest.raises(ParsynError):
        validation.validate(context, made["id"], 1)
    assert (await owner.get(f"/datasets/{made['id']}")).body["status"] == "validating"


async def test_a_key_without_write_only_reads(owner: Person, context: Context) -> None:
    key = (await owner.post("/api-keys", {"name": "r", "scopes": ["read"]})).body["key"]
    reader = replace(owner, key=key)
    assert (await reader.get("/datasets")).status == 200
    assert (await send_file(reader, FILE)).status == 403
