"""Models: brought in three ways, refused with a sentence, tied to where they come from."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from parsyn.errors import ParsynError
from parsyn.services import datasets, imports, models
from parsyn.services.context import Context
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.models import Model, ModelFile
from parsyn.store.users import User
from parsyn.wire.refs import FileRef
from parsyn.wire.states import FailureReason, JobStatus
from parsyn.wire.tasks import Failure, Manifest
from tests.hub.conftest import Answer, Person, deliver_effects, run_jobs
from tests.hub.test_datasets import FILE, make
from tests.hub.tiny_model import TEMPLATE, model_files, safetensors, write_folder


def import_tiny(owner: Person, context: Context, tmp_path: Path, name: str = "Tiny") -> int:
    folder = write_folder(tmp_path / "tiny")
    with context.database.connection():
        user = User.get_by_id(owner.user_id)
        return int(imports.import_folder(context, user, folder, name).id)


async def upload_file(who: Person, name: str, data: bytes) -> int:
    body = {"filename": name, "size": len(data), "purpose": "model"}
    upload_id = int((await who.post("/uploads", body)).body["id"])
    await who.put(f"/uploads/{upload_id}/parts/1", data)
    await who.post(f"/uploads/{upload_id}/complete")
    return upload_id


async def upload_model(who: Person, files: dict[str, bytes], name: str = "Mine") -> Answer:
    ids = await asyncio.gather(*(upload_file(who, *item) for item in files.items()))
    return await who.post("/models", {"name": name, "source": "upload", "upload_ids": ids})


async def test_tokens_are_counted_again_once_there_is_a_tokenizer(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    made = await make(owner, context, FILE)
    path = f"/datasets/{made['id']}"
    estimated = (await owner.get(f"{path}/stats")).body["tokens"]
    assert estimated["tokenizer"] == "characters/4"
    import_tiny(owner, context, tmp_path)
    assert (await owner.get(path)).body["stats_status"] == "running"
    assert (await owner.get(f"{path}/stats")).body["tokens"] == estimated, "shown meanwhile"
    context.database.write_sync(datasets.find_lost, context)
    run_jobs(context)
    counted = (await owner.get(f"{path}/stats")).body["tokens"]
    assert counted["tokenizer"] == "Tiny"
    assert counted["total"] > estimated["total"]
    with context.database.transaction():
        datasets.count_again(owner.project_id)
    assert (await owner.get(path)).body["stats_status"] == "ready"


async def test_a_folder_becomes_a_model(owner: Person, context: Context, tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "pytorch_model.bin").write_bytes(b"left out")
    model_id = import_tiny(owner, context, tmp_path)
    found = (await owner.get(f"/models/{model_id}")).body
    told = ("slug", "state", "source", "architecture", "parameters", "context_length", "license")
    assert [found[name] for name in told] == [
        "tiny",
        "ready",
        "import",
        "LlamaForCausalLM",
        6,
        512,
        "apache-2.0",
    ]
    assert (found["chat_template"], found["formats"]) == (TEMPLATE, ["hf"])
    files = (await owner.get(f"/models/{model_id}/files")).body
    wanted = {n: hashlib.sha256(d).hexdigest() for n, d in model_files().items()}
    assert {file["path"]: file["sha256"] for file in files["items"]} == wanted
    assert found["size"] == sum(file["size"] for file in files["items"])


async def test_uploaded_files_become_a_model(owner: Person) -> None:
    made = await upload_model(owner, model_files())
    assert made.status == 201, made.body
    assert (made.body["state"], made.body["source"], made.body["parameters"]) == (
        "ready",
        "upload",
        6,
    )
    twin = await upload_model(owner, model_files())
    assert (made.body["slug"], twin.body["slug"]) == ("mine", "mine-2")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("config.json", b"[1]", "not a JSON object"),
        ("config.json", b'{"auto_map": {"AutoModel": "evil.Model"}}', "auto_map"),
        ("pytorch_model.bin", b"\x80\x04", "pickle"),
        ("training_args.PT", b"\x80\x04", "pickle"),
        ("model.safetensors", safetensors(data=bytes(5)), "5 bytes"),
    ],
)
async def test_uploads_that_make_no_model(
    owner: Person, name: str, data: bytes, words: str
) -> None:
    answer = await upload_model(owner, {**model_files(), name: data})
    assert (answer.status, answer.code) == (422, "unsupported")
    assert words in answer.body["detail"]


async def test_a_folder_that_is_refused_leaves_nothing(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    files = model_files()
    del files["model.safetensors"]
    # Pickles of a folder are left out; uploaded, someone meant them.
    folder = write_folder(tmp_path / "bad", {**files, "pytorch_model.bin": b"\x80\x04"})
    with context.database.connection():
        user = User.get_by_id(owner.user_id)
        with pytest.raises(ParsynError, match="There are no weights"):
            imports.import_folder(context, user, folder, "Bad")
        assert Model.select().count() == 0
    assert list(context.storage.list("models")) == []


async def test_a_model_is_renamed_and_found(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    model_id = import_tiny(owner, context, tmp_path)
    renamed = await owner.patch(f"/models/{model_id}", {"name": "Great"})
    assert (renamed.body["name"], renamed.body["slug"]) == ("Great", "tiny")
    for query, total in (({"q": "rea"}, 1), ({"q": "tiny"}, 0), ({"state": "failed"}, 0)):
        assert (await owner.get("/models", query_string=query)).body["total"] == total
    assert (await owner.get("/models", query_string={"state": "odd"})).status == 422


async def test_a_folder_that_is_none(owner: Person, context: Context, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with context.database.connection():
        user = User.get_by_id(owner.user_id)
        for path, words in ((file, "no folder"), (tmp_path / "nothing", "cannot be read")):
            with pytest.raises(ParsynError, match=words):
                imports.import_folder(context, user, path, "Bad")


async def test_a_hub_id_is_registered_and_its_fetching_queued(owner: Person) -> None:
    body = {"name": "Small", "source": "hub", "hub_id": "org/small-model", "revision": "main"}
    made = await owner.post("/models", body)
    assert (made.status, made.body["state"], made.body["hub_id"]) == (
        201,
        "registered",
        "org/small-model",
    )
    assert made.body["job_id"] is not None
    again = await owner.get(f"/models/{made.body['id']}/download")
    assert (again.status, again.code) == (409, "invalid_state")


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"source": "hub"}, []),
        ({"source": "hub", "hub_id": "../etc"}, ["hub_id"]),
        ({"source": "hub", "hub_id": "/etc/passwd"}, ["hub_id"]),
        ({"source": "hub", "hub_id": "https://evil/x"}, ["hub_id"]),
        ({"source": "hub", "hub_id": "a/b/c"}, ["hub_id"]),
        ({"source": "hub", "hub_id": "a/b", "revision": "--upload-pack"}, ["revision"]),
        ({"source": "upload", "upload_ids": [999]}, ["upload_ids", 0]),
        ({"source": "upload", "upload_ids": []}, []),
        ({"source": "folder", "path": "/etc"}, ["source"]),
    ],
)
async def test_models_that_are_refused(owner: Person, body: dict[str, Any], loc: list[Any]) -> None:
    answer = await owner.post("/models", {"name": "x", **body})
    assert (answer.status, answer.body["errors"][0]["loc"]) == (422, loc)


async def test_what_an_agent_fetched_fills_the_model(owner: Person, context: Context) -> None:
    body = {"name": "Small", "source": "hub", "hub_id": "org/small-model"}
    made = (await owner.post("/models", body)).body
    stored = context.storage.put("jobs/1/chat_template.jinja", [TEMPLATE.encode()])
    ref = FileRef(
        path="chat_template.jinja", key=stored.key, size=stored.size, sha256=str(stored.sha256)
    )
    facts = {"architecture": "LlamaForCausalLM", "parameters": 7, "context_length": 99}
    more = {"revision": "abc123", "license": "mit", "size": 5000}
    with context.database.transaction():
        job = Job.get_by_id(made["job_id"])
        models.fill_from_download(context, job, Manifest(files=(ref,), facts={**facts, **more}))
    found = (await owner.get(f"/models/{made['id']}")).body
    wanted = {**facts, **more, "state": "ready", "chat_template": TEMPLATE}
    assert {name: found[name] for name in wanted} == wanted
    with context.database.connection():
        told = models.model_ref(Model.get_by_id(made["id"]))
    assert (told.hub_id, told.revision, told.files) == ("org/small-model", "abc123", ())


async def test_a_fetching_that_failed_is_told(owner: Person, context: Context) -> None:
    made = (await owner.post("/models", {"name": "x", "source": "hub", "hub_id": "o/x"})).body
    failure = Failure(reason=FailureReason.MODEL_UNAVAILABLE, message="There is no o/x.")
    with context.database.transaction():
        models.mark_failed(context, Job.get_by_id(made["job_id"]), failure)
    found = (await owner.get(f"/models/{made['id']}")).body
    assert (found["state"], found["failure"]["message"]) == ("failed", "There is no o/x.")


# --- fine-tunes ------------------------------------------------------------------------------


def tune(owner: Person, context: Context, base_id: int, dataset_id: int, name: str = "Bot") -> int:
    """A fine-tune as a training leaves it."""
    stored = context.storage.put(f"jobs/{name}/adapter_config.json", [b"{}"])
    ref = FileRef(path="adapter_config.json", key=stored.key, size=2, sha256=str(stored.sha256))
    with context.database.transaction():
        job = Job.create(
            user=owner.user_id,
            project=owner.project_id,
            kind="training",
            name=name,
            status=JobStatus.COMPLETED,
            model=base_id,
            dataset=dataset_id,
            request={"trainer": "sft", "config": {}, "export": [], "worker_selection": {}},
            params={"method": "lora", "lora_r": 16, "learning_rate": 2e-4},
            result={"steps": 12, "final_loss": 1.5},
        )
        made = models.create_from_training(context, job, Manifest(files=(ref,)))
        Job.update(result_model=made).where(Job.id == job.id).execute()
        return int(made.id)


async def test_a_fine_tune_knows_its_base_dataset_and_job(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    base_id = import_tiny(owner, context, tmp_path)
    dataset = await make(owner, context)
    first = tune(owner, context, base_id, dataset["id"])
    second = tune(owner, context, base_id, dataset["id"])
    found = (await owner.get(f"/models/{first}")).body
    assert (found["base_model_id"], found["formats"], found["version"]) == (
        base_id,
        ["adapter"],
        1,
    )
    assert (found["architecture"], found["chat_template"]) == ("LlamaForCausalLM", TEMPLATE)
    newer = (await owner.get(f"/models/{second}")).body
    assert (newer["version"], newer["slug"]) == (2, "bot-2")
    graph = (await owner.get(f"/models/{first}/lineage")).body
    kinds = sorted((node["kind"], node["name"]) for node in graph["nodes"])
    assert kinds == [("dataset", "rows"), ("job", "Bot"), ("model", "Bot"), ("model", "Tiny")]
    edges = {(e["source"].split(":")[0], e["target"].split(":")[0]) for e in graph["edges"]}
    assert edges == {("model", "job"), ("dataset", "job"), ("job", "model")}
    with context.database.connection():
        ref = models.model_ref(Model.get_by_id(first))
    assert ref.base is not None
    assert [file.path for file in ref.files] == ["adapter_config.json"]
    assert ref.base.id == base_id
    assert len(ref.base.files) == len(model_files())
    card = (await owner.get(f"/models/{first}/card")).raw.decode()
    for words in ('base_model: "Tiny"', "| `lora_r` | 16 |", "dataset rows (40 rows)", "bot"):
        assert words in card


async def test_without_its_job_a_fine_tune_hangs_on_its_base(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    base_id = import_tiny(owner, context, tmp_path)
    dataset = await make(owner, context)
    made = tune(owner, context, base_id, dataset["id"])
    with context.database.transaction():
        Job.delete().execute()
    for model_id in (base_id, made):
        graph = (await owner.get(f"/models/{model_id}/lineage")).body
        (edge,) = graph["edges"]
        assert (edge["source"], edge["target"]) == (f"model:{base_id}", f"model:{made}")


async def test_what_others_need_is_not_deleted(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    base_id = import_tiny(owner, context, tmp_path)
    made = tune(owner, context, base_id, (await make(owner, context))["id"])
    used = await owner.delete(f"/models/{base_id}")
    assert (used.status, used.code) == (409, "invalid_state")
    assert "the fine-tune Bot" in used.body["detail"]
    with context.database.transaction():
        Job.create(
            user=owner.user_id, project=owner.project_id, kind="export", name="to GGUF",
            status=JobStatus.RUNNING, model=made, request={"format": "gguf"},
        )  # fmt: skip
    assert "to GGUF" in (await owner.delete(f"/models/{made}")).body["detail"]
    with context.database.transaction():
        Job.update(status=JobStatus.COMPLETED).execute()
    assert (await owner.delete(f"/models/{made}")).status == 204
    assert (await owner.delete(f"/models/{base_id}")).status == 204
    deliver_effects(context)
    assert list(context.storage.list("models")) == []
    with context.database.connection():
        assert ModelFile.select().count() == 0


async def test_download_as_an_archive_or_one_file(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    model_id = import_tiny(owner, context, tmp_path)
    answer = await owner.get(f"/models/{model_id}/download")
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.raw)) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {f"tiny/{name}": data for name, data in model_files().items()}
    one = await owner.get(
        f"/models/{model_id}/download",
        query_string={"path": "config.json"},
        headers={"Range": "bytes=0-3"},
    )
    assert (one.status, one.raw) == (206, model_files()["config.json"][:4])
    for path in ("../config.json", "nothing", ""):
        missing = await owner.get(f"/models/{model_id}/download", query_string={"path": path})
        assert missing.status == 404


async def test_preview_with_a_model_shows_what_is_learnt(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    base_id = import_tiny(owner, context, tmp_path)
    dataset = await make(owner, context, FILE)
    stats = (await owner.get(f"/datasets/{dataset['id']}/stats")).body
    assert stats["tokens"]["tokenizer"] == "Tiny"
    # A fine-tune without a tokenizer of its own has its base's.
    made = tune(owner, context, base_id, dataset["id"])
    for model_id in (base_id, made):
        shown = (
            await owner.get(
                f"/datasets/{dataset['id']}/preview",
                query_string={"model_id": model_id, "limit": 1},
            )
        ).body
        (row,) = shown["items"]
        assert shown["template"] == "model"
        assert row["rendered"] == "<|user|>Q0<|end|><|assistant|>A<|end|>"
        learnt = "".join(token["text"] for token in row["tokens"] if token["trained"])
        assert learnt == "A<|end|>"


async def test_a_model_that_cannot_count_does_not_cost_the_statistics(
    owner: Person, context: Context, tmp_path: Path
) -> None:
    write_folder(tmp_path / "odd", {**model_files(), "tokenizer.json": b"{}"})
    with context.database.connection():
        user = User.get_by_id(owner.user_id)
        odd = imports.import_folder(context, user, tmp_path / "odd", "Odd").id
    dataset = await make(owner, context)
    assert dataset["stats"]["tokens"]["tokenizer"] == "characters/4"
    shown = await owner.get(f"/datasets/{dataset['id']}/preview", query_string={"model_id": odd})
    assert (shown.status, shown.code) == (422, "bad_data")
    assert "tokenizer.json" in shown.body["detail"]


# --- what is visible -------------------------------------------------------------------------


async def test_a_base_that_is_not_theirs_is_not_in_the_graph(
    people: dict[str, Person], context: Context, tmp_path: Path
) -> None:
    owner, other = people["owner"], people["other"]
    base_id = import_tiny(owner, context, tmp_path)
    made = tune(owner, context, base_id, (await make(owner, context))["id"])
    with context.database.transaction():
        # As if the fine-tune had been moved to another's project.
        Model.update(project=other.project_id).where(Model.id == made).execute()
    graph = (await other.get(f"/models/{made}/lineage")).body
    assert [node["key"] for node in graph["nodes"]] == [f"model:{made}"]
    with context.database.connection():
        assert Dataset.select().count() == 1


async def test_the_overview_counts_what_is_visible(
    people: dict[str, Person], context: Context, tmp_path: Path
) -> None:
    owner = people["owner"]
    base_id = import_tiny(owner, context, tmp_path)
    await make(owner, context)
    tune(owner, context, base_id, 1)
    with context.database.transaction():
        Job.update(
            status=JobStatus.FAILED, finished_at=2e10,
            failure={"reason": "diverged", "message": "The loss became NaN."},
        ).execute()  # fmt: skip
    seen = (await owner.get("/overview")).body
    assert (seen["datasets"], seen["models"], seen["workers"]) == (1, 2, 0)
    assert [job["name"] for job in seen["needs_attention"]] == ["Bot"]
    assert seen["storage_bytes"] == len(FILE) + 2 + sum(map(len, model_files().values()))
    nothing = (await people["other"].get("/overview")).body
    assert (nothing["datasets"], nothing["models"], nothing["recent_jobs"]) == (0, 0, [])
    assert nothing["storage_bytes"] == 0
