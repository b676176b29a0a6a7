"""The routes of jobs and workers: what is refused, where, and to whom."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from parsyn.services import tasks, training, workers
from parsyn.services.context import Context
from parsyn.store.jobs import Artifact, Job, Task
from parsyn.store.models import Model
from parsyn.wire.api.training import TrainingJobIn
from parsyn.wire.api.workers import WorkerIn
from parsyn.wire.states import JobStatus, ModelState, Scope, TaskStatus
from tests.hub.conftest import Person, make_key
from tests.hub.job_stage import make_dataset, make_model


class Ids:
    """Things of the owner, one of each."""

    def __init__(self, context: Context, owner: Person) -> None:
        self.context, self.owner = context, owner
        self.model = make_model(context, owner)
        self.dataset = make_dataset(context, owner)
        self.body = {"model_id": self.model, "dataset_id": self.dataset}
        who = owner.principal
        write = context.database.write_sync
        self.job = write(training.create, context, who, TrainingJobIn(**self.body))["id"]
        made = write(workers.create, context, who, WorkerIn(name="rig"))
        self.worker, self.worker_key = made["worker"]["id"], made["api_key"]


@pytest.fixture
async def ids(context: Context, owner: Person) -> Ids:
    return Ids(context, owner)


# --- what is refused ----------------------------------------------------------------------------


async def refused(owner: Person, body: dict[str, Any]) -> tuple[int, list[Any], str]:
    answer = await owner.post("/training-jobs", body)
    return answer.status, answer.body["errors"][0]["loc"], answer.body["errors"][0]["msg"]


@pytest.mark.parametrize(
    ("change", "loc", "words"),
    [
        ({"model_id": 999}, ["model_id"], "no such model"),
        ({"dataset_id": 999}, ["dataset_id"], "no such dataset"),
        ({"validation_dataset_id": 999}, ["validation_dataset_id"], "no such dataset"),
        ({"trainer": "magic"}, ["trainer"], "Installed: sft"),
        ({"preset": "best"}, ["preset"], "no preset"),
        ({"config": {"learning_rte": 1}}, ["config", "learning_rte"], "learning_rate"),
        ({"config": {"epochs": "many"}}, ["config", "epochs"], "number"),
        ({"config": {"max_seq_length": 4096}}, ["config", "max_seq_length"], "512"),
        ({"export": ["pdf"]}, ["export", 0], "no exporter"),
        ({"distributed": {"enabled": True}}, ["distributed", "enabled"], "one worker"),
        ({"worker_selection": {"worker_ids": [77]}}, ["worker_selection", "worker_ids", 0], "no"),
        (
            {"worker_selection": {"mode": "specific_user_workers"}},
            ["worker_selection", "worker_ids"],
            "at least one",
        ),
        ({"project_id": 99}, ["project_id"], "no such project"),
        ({"colour": "red"}, ["colour"], "not permitted"),
    ],
)
async def test_a_job_that_cannot_work_is_refused_at_its_field(
    owner: Person, ids: Ids, change: dict[str, Any], loc: list[Any], words: str
) -> None:
    status, where, message = await refused(owner, {**ids.body, **change})
    assert (status, where) == (422, loc)
    assert words in message


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"status": "validating"}, "still being checked"),
        ({"status": "invalid", "summary": "It is a picture."}, "It is a picture."),
        ({"needs_mapping": True}, "map them first"),
        ({"row_count": 0}, "no usable rows"),
        ({"schema_kind": "preference"}, "preference"),
    ],
)
async def test_datasets_that_are_not_ready(
    context: Context, owner: Person, ids: Ids, columns: dict[str, Any], words: str
) -> None:
    dataset_id = make_dataset(context, owner, "Odd", **columns)
    status, where, message = await refused(owner, {**ids.body, "dataset_id": dataset_id})
    assert (status, where) == (422, ["dataset_id"])
    assert words in message


async def test_a_model_that_is_not_ready(context: Context, owner: Person, ids: Ids) -> None:
    with context.database.transaction():
        Model.update(state=ModelState.REGISTERED).where(Model.id == ids.model).execute()
    assert (await refused(owner, ids.body))[1] == ["model_id"]
    started = await owner.post(f"/training-jobs/{ids.job}/start")
    assert (started.status, started.body["errors"][0]["loc"]) == (422, ["model_id"])


async def test_a_plugin_may_refuse_the_start(context: Context, owner: Person, ids: Ids) -> None:
    class Miser:
        @staticmethod
        def may_start_job(job: dict[str, Any]) -> str:
            return f"Job {job['job_id']} costs too much."

    from parsyn.plugin.hookspecs import hookimpl

    hookimpl(Miser.may_start_job)
    context.plugins.pluggy.register(Miser, "miser")
    answer = await owner.post(f"/training-jobs/{ids.job}/start")
    assert (answer.status, answer.body["detail"]) == (403, f"Job {ids.job} costs too much.")
    assert (await owner.get(f"/training-jobs/{ids.job}")).body["status"] == "pending"


# --- life ---------------------------------------------------------------------------------------


async def test_verbs_in_the_wrong_state(owner: Person, ids: Ids) -> None:
    path = f"/training-jobs/{ids.job}"
    assert (await owner.post(f"{path}/resume")).code == "invalid_state"
    assert (await owner.post(f"{path}/start")).body["status"] == "queued"
    again = await owner.post(f"{path}/start")
    assert (again.status, again.code) == (409, "invalid_state")
    assert "is queued; only a pending job" in again.body["detail"]
    assert (await owner.delete(path)).status == 409
    assert (await owner.post(f"{path}/cancel")).body["status"] == "cancelled"
    assert (await owner.post(f"{path}/resume")).body["status"] == "queued"
    assert (await owner.post(f"{path}/cancel")).body["attempt"] == 2
    assert (await owner.delete(path)).status == 204
    assert (await owner.get(path)).status == 404


async def test_start_with_the_same_idempotency_key(owner: Person, ids: Ids) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await owner.post(f"/training-jobs/{ids.job}/start", headers=headers)
    second = await owner.post(f"/training-jobs/{ids.job}/start", headers=headers)
    assert (first.status, second.status, first.body) == (200, 200, second.body)


async def test_duplicate_merges_the_config(owner: Person, ids: Ids) -> None:
    made = await owner.post("/training-jobs", {**ids.body, "config": {"epochs": 2, "lora_r": 8}})
    changes = {"name": "Next", "config": {"lora_r": 4}}
    copy = await owner.post(f"/training-jobs/{made.body['id']}/duplicate", {"changes": changes})
    assert copy.status == 201
    assert (copy.body["name"], copy.body["status"]) == ("Next", "pending")
    assert copy.body["config"] == {"epochs": 2, "lora_r": 4}
    bad = await owner.post(f"/training-jobs/{ids.job}/duplicate", {"changes": {"nmae": "x"}})
    assert (bad.status, bad.body["errors"][0]["loc"]) == (422, ["changes", "nmae"])


async def test_lists_filter(owner: Person, ids: Ids) -> None:
    named = await owner.post("/training-jobs", {**ids.body, "name": "Zebra"})
    await owner.post(f"/training-jobs/{named.body['id']}/start")

    async def names(query: str) -> list[str]:
        page = (await owner.get(f"/training-jobs?{query}")).body
        assert page["total"] == len(page["items"])
        return [item["name"] for item in page["items"]]

    assert await names("") == ["Zebra", "Tiny on Greetings"]
    assert await names("search=zeb") == ["Zebra"]
    assert await names("status=queued,running") == ["Zebra"]
    assert await names(f"model_id={ids.model}&status=pending") == ["Tiny on Greetings"]
    assert await names("dataset_id=99") == []
    assert (await owner.get("/training-jobs?status=nonsense")).status == 422
    page = (await owner.get("/training-jobs?limit=1&offset=1")).body
    assert ([item["name"] for item in page["items"]], page["total"]) == (["Tiny on Greetings"], 2)


async def test_an_export_downloads_as_a_zip_or_file_by_file(
    context: Context, owner: Person, ids: Ids
) -> None:
    with context.database.transaction():
        job = Job.create(
            user=owner.user_id, project=owner.project_id, kind="export", name="Tiny as GGUF",
            model=ids.model, request={"format": "gguf"}, params={}, status=JobStatus.RUNNING,
        )  # fmt: skip
        for path, body in (("model.gguf", b"GGUF!"), ("sub/readme.md", b"# Hi")):
            stored = context.storage.put(f"tasks/9/1/result/{path}", [body])
            Artifact.create(
                job=job, kind="export", path=path, key=stored.key, size=stored.size, sha256="0" * 64
            )
    early = await owner.get(f"/exports/{job.id}/download")
    assert (early.status, early.code) == (409, "invalid_state")
    with context.database.transaction():
        Job.update(status=JobStatus.COMPLETED).where(Job.id == job.id).execute()
    archive = await owner.get(f"/exports/{job.id}/download")
    with zipfile.ZipFile(io.BytesIO(archive.raw)) as opened:
        assert opened.testzip() is None
        contents = {name: opened.read(name) for name in opened.namelist()}
    assert contents == {"Tiny as GGUF/model.gguf": b"GGUF!", "Tiny as GGUF/sub/readme.md": b"# Hi"}
    one = await owner.get(f"/exports/{job.id}/download?path=model.gguf")
    assert (one.status, one.raw) == (200, b"GGUF!")
    assert (await owner.get(f"/exports/{job.id}/download?path=../secret.key")).status == 404
    shown = (await owner.get(f"/exports/{job.id}")).body
    assert [file["path"] for file in shown["files"]] == ["model.gguf", "sub/readme.md"]


async def test_an_export_is_queued_cancelled_and_tried_again(owner: Person, ids: Ids) -> None:
    body = {"format": "gguf", "params": {"quantization": "Q8_0"}}
    made = await owner.post(f"/models/{ids.model}/export", body)
    assert (made.status, made.body["status"]) == (202, "queued")
    path = f"/exports/{made.body['id']}"
    shown = (await owner.get(path)).body
    assert (shown["format"], shown["params"]["quantization"]) == ("gguf", "Q8_0")
    assert (await owner.get("/exports")).body["total"] == 1
    assert (await owner.get(f"/models/{ids.model}/exports")).body["total"] == 1
    assert (await owner.post(f"{path}/retry")).code == "invalid_state"
    assert (await owner.post(f"{path}/cancel")).body["status"] == "cancelled"
    again = await owner.post(f"{path}/retry")
    assert (again.body["status"], again.body["attempt"]) == ("queued", 2)
    refused_at = [
        ({"format": "pdf"}, ["format"]),
        ({"params": {"quantization": "Q99"}}, ["params", "quantization"]),
    ]
    for change, loc in refused_at:
        wrong = await owner.post(f"/models/{ids.model}/export", {**body, **change})
        assert (wrong.status, wrong.body["errors"][0]["loc"]) == (422, loc)
    assert (await owner.post("/models/99/export", body)).status == 404


async def test_the_installed_plugins(owner: Person) -> None:
    pages = [
        ((await owner.get("/trainers")).body, "sft"),
        ((await owner.get("/evaluators")).body, "perplexity"),
        ((await owner.get("/exporters")).body, "gguf"),
    ]
    for page, name in pages:
        found = {item["name"]: item for item in page["items"]}
        assert found[name]["title"]
        assert found[name]["schema"]["properties"]


async def test_an_evaluation_is_queued_and_cancelled(owner: Person, ids: Ids) -> None:
    made = await owner.post("/evaluations", ids.body)
    assert (made.status, made.body["status"]) == (202, "queued")
    path = f"/evaluations/{made.body['id']}"
    assert (await owner.get(path)).body["evaluator"] == "perplexity"
    assert (await owner.post(f"{path}/cancel")).body["status"] == "cancelled"
    listed = (await owner.get(f"/evaluations?model_id={ids.model}")).body
    assert [item["id"] for item in listed["items"]] == [made.body["id"]]
    unknown = await owner.post("/evaluations", {**ids.body, "evaluator": "taste"})
    assert (unknown.status, unknown.body["errors"][0]["loc"]) == (422, ["evaluator"])


# --- who may ------------------------------------------------------------------------------------

OWN = [
    ("GET", "/training-jobs/{job}", None, 200),
    ("GET", "/training-jobs/{job}/metrics", None, 200),
    ("GET", "/training-jobs/{job}/logs", None, 200),
    ("GET", "/training-jobs/{job}/events", None, 200),
    ("GET", "/training-jobs/{job}/samples", None, 200),
    ("GET", "/training-jobs/{job}/checkpoints", None, 200),
    ("GET", "/training-jobs/{job}/artifacts", None, 200),
    ("GET", "/workers/{worker}", None, 200),
    ("GET", "/workers/{worker}/metrics", None, 200),
    ("GET", "/exporters?model_id={model}", None, 200),
    ("GET", "/models/{model}/exports", None, 200),
    ("PATCH", "/training-jobs/{job}", {"name": "x"}, 200),
    ("POST", "/training-jobs/{job}/duplicate", {}, 201),
    ("POST", "/training-jobs/{job}/start", {}, 200),
    ("POST", "/training-jobs/{job}/cancel", {}, 200),
    ("POST", "/training-jobs/{job}/resume", {}, 200),
    ("POST", "/training-jobs/{job}/cancel", {}, 200),
    ("DELETE", "/training-jobs/{job}", None, 204),
    ("PATCH", "/workers/{worker}", {"name": "x"}, 200),
    ("POST", "/workers/{worker}/pause", {}, 200),
    ("POST", "/workers/{worker}/drain", {}, 200),
    ("POST", "/workers/{worker}/resume", {}, 200),
    ("POST", "/workers/{worker}/rotate-key", {}, 200),
    ("DELETE", "/workers/{worker}", None, 204),
]


def table(ids: Ids) -> Iterator[tuple[str, str, Any, int]]:
    for method, path, body, status in OWN:
        yield method, path.format(**vars(ids)), body, status


async def test_the_owner_may_all_of_it(owner: Person, ids: Ids) -> None:
    for method, path, body, status in table(ids):
        answer = await owner.ask(method, path, body)
        assert answer.status == status, (method, path, answer.raw)


async def test_nobody_and_strangers(anonymous: Person, other: Person, ids: Ids) -> None:
    for method, path, body, _ in table(ids):
        assert (await anonymous.ask(method, path, body)).status == 401, (method, path)
        assert (await other.ask(method, path, body)).status == 404, (method, path)
    for field in ("model_id", "dataset_id"):
        own = {"model_id": make_model(ids.context, other, "Mine"),
               "dataset_id": make_dataset(ids.context, other, "Mine")}  # fmt: skip
        for path in ("/training-jobs", "/evaluations"):
            answer = await other.post(path, {**own, field: ids.body[field]})
            assert (answer.status, answer.body["errors"][0]["loc"]) == (422, [field])
        with ids.context.database.transaction():
            Model.delete().where(Model.name == "Mine").execute()
    for path in ("/training-jobs", "/workers", "/exports", "/evaluations", "/master-keys"):
        assert (await other.get(path)).body["total"] == 0


async def test_a_viewer_sees_and_changes_nothing(viewer: Person, ids: Ids) -> None:
    for method, path, body, _ in table(ids):
        status = (await viewer.ask(method, path, body)).status
        # A copy goes where the original is, so it needs the editor's role too.
        assert status == (200 if method == "GET" else 403), (method, path)


async def test_an_editor_runs_jobs_but_revokes_no_keys(editor: Person, ids: Ids) -> None:
    for method, path, body, status in table(ids):
        admin_only = path.endswith("rotate-key") or (method == "DELETE" and "/workers/" in path)
        expected = 403 if admin_only else status
        assert (await editor.ask(method, path, body)).status == expected, (method, path)


async def test_keys_without_the_scope(owner: Person, context: Context, ids: Ids) -> None:
    reader = make_key(context, owner.user_id, [Scope.READ])
    writer = make_key(context, owner.user_id, [Scope.READ, Scope.WRITE])
    for method, path, body, _ in table(ids):
        if method != "GET":
            headers = {"Authorization": f"Bearer {reader}"}
            assert (await owner.ask(method, path, body, headers=headers)).status == 403
            if "/workers/" in path:
                headers = {"Authorization": f"Bearer {writer}"}
                assert (await owner.ask(method, path, body, headers=headers)).status == 403


async def test_workers_of_others_are_not_offered_ones_work(
    context: Context, owner: Person, other: Person, ids: Ids
) -> None:
    await owner.post(f"/training-jobs/{ids.job}/start")
    made = await other.post("/workers", {"name": "theirs"})
    with context.database.transaction():
        from parsyn.store.workers import Worker

        Worker.update(status="idle", connection="x:1").where(
            Worker.id == made.body["worker"]["id"]
        ).execute()
    from parsyn.services import scheduling

    assert context.database.write_sync(scheduling.dispatch, context) == 0
    with context.database.connection():
        task = tasks.latest(ids.job)
        assert task is not None
        assert (task.status, Task.get_by_id(task.id).worker_id) == (TaskStatus.QUEUED, None)
    shown = (await owner.get(f"/training-jobs/{ids.job}")).body
    assert "theirs" not in str(shown["waiting"])
    assert "theirs" not in str(shown["placement"])
