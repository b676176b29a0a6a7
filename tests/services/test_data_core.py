"""Accounts, uploads, datasets and models on both databases, without HTTP."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parsyn.clock import shifted
from parsyn.errors import ErrorCode, ParsynError
from parsyn.services import (
    accounts,
    admin,
    datasets,
    imports,
    keys,
    lineage,
    models,
    outbox,
    overview,
    tokenizers,
    uploads,
    validation,
)
from parsyn.services.context import Context
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.store.outbox import Outbox
from parsyn.store.projects import ProjectMember
from parsyn.store.uploads import UploadPart
from parsyn.store.users import LoginFailure, User
from parsyn.wire.api.datasets import DatasetIn, DatasetPatch, UploadIn
from parsyn.wire.refs import FileRef
from parsyn.wire.states import JobStatus, ProjectRole, Role, Scope
from parsyn.wire.tasks import Manifest
from tests.hub.tiny_model import model_files, write_folder

ROWS = "".join(
    json.dumps({"prompt": f"Q{n}", "completion": "A"}) + "\n" for n in range(30)
).encode()
PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$nothing"


@dataclass
class Room:
    """Two users who share nothing, on one database."""

    context: Context
    ann: Principal
    bob: Principal

    def write(self, fn: Any, *args: Any, **more: Any) -> Any:
        return self.context.database.write_sync(fn, *args, **more)

    def read(self, fn: Any, *args: Any, **more: Any) -> Any:
        with self.context.database.connection():
            return fn(*args, **more)

    def refusal(self, fn: Any, *args: Any) -> ErrorCode | None:
        """The code with which a write is refused; None when it is done."""
        try:
            self.write(fn, *args)
        except ParsynError as error:
            return error.code
        return None

    def upload(self, data: bytes = ROWS, filename: str = "rows.jsonl") -> int:
        """A complete upload in one part."""
        body = UploadIn(filename=filename, size=len(data))
        upload_id = int(self.write(uploads.create, self.context, self.ann, body)["id"])
        self.send(upload_id, 1, data)
        self.complete(upload_id)
        return upload_id

    def send(self, upload_id: int, n: int, data: bytes) -> None:
        place = self.read(uploads.part_place, self.ann, upload_id, n)
        stored = self.context.storage.put(place.key, [data])
        self.write(uploads.store_part, self.context, self.ann, upload_id, n, stored)

    def complete(self, upload_id: int, sha256: str | None = None) -> dict[str, Any]:
        joining = self.write(uploads.begin_complete, self.ann, upload_id, sha256)
        stored = uploads.join(self.context, joining)
        done: dict[str, Any] = self.write(uploads.finish_complete, self.ann, joining, stored)
        return done

    def dataset(self, **more: Any) -> dict[str, Any]:
        """A validated and measured dataset."""
        body = DatasetIn(name="rows", upload_id=self.upload(), **more)
        made = self.write(datasets.create, self.context, self.ann, body)
        validation.validate(self.context, made["id"], 1)
        validation.measure(self.context, made["id"], 1)
        found: dict[str, Any] = self.read(datasets.get, self.ann, made["id"])
        return found

    def model(self, tmp_path: Path, name: str = "Tiny") -> Model:
        folder = write_folder(tmp_path / name)
        user = self.read(User.get_by_id, self.ann.user_id)
        return imports.import_folder(self.context, user, folder, name)


@pytest.fixture
def room(any_context: Context) -> Room:
    any_context.queue.redis.flushdb()
    with any_context.database.transaction():
        people = [
            accounts.create_user(email, email[:3], "x", role, PASSWORD_HASH)
            for email, role in (("ann@example.org", Role.OWNER), ("bob@example.org", Role.USER))
        ]
    ann, bob = (Principal(user.id, Role(user.role), ALL_SCOPES, "bearer") for user in people)
    return Room(any_context, ann, bob)


def test_an_address_is_taken_once_however_it_is_written(room: Room) -> None:
    with pytest.raises(ParsynError) as caught:
        room.write(accounts.create_user, " ANN@example.org ", "A", "x", Role.USER, PASSWORD_HASH)
    assert caught.value.errors[0].loc == ("email",)


def test_parallel_guesses_all_count(room: Room) -> None:
    def guess(_: int) -> ErrorCode | None:
        return room.refusal(accounts.begin_log_in, "ann@example.org", 5)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(guess, range(40)))
    assert set(answers) == {None, ErrorCode.RATE_LIMITED}
    allowed = answers.count(None)
    # PostgreSQL lets as many more through as have begun before the first is committed.
    assert 5 <= allowed <= 5 + 8
    assert room.read(LoginFailure.select().count) == allowed
    with pytest.raises(ParsynError):
        room.write(accounts.begin_log_in, "Ann@example.org", 5)


def test_keys_stand_for_their_user_until_they_expire(room: Room) -> None:
    made = room.write(keys.create, room.bob, "k", [Scope.READ], None)
    who = room.read(accounts.find_principal, made["key"], "bearer")
    assert (who.user_id, who.scopes) == (room.bob.user_id, {Scope.READ})
    assert room.read(accounts.find_principal, made["key"], "cookie") is None
    with pytest.raises(ParsynError):
        room.write(keys.create, room.bob, "k", [Scope.ADMIN], None)
    room.write(keys.delete, room.bob, made["id"])
    assert room.read(accounts.find_principal, made["key"], "bearer") is None


def test_two_owners_cannot_both_go(room: Room) -> None:
    room.write(admin.change_user, room.context, room.ann, room.bob.user_id, Role.OWNER, None)

    def demote(user_id: int) -> ErrorCode | None:
        return room.refusal(admin.change_user, room.context, room.ann, user_id, Role.USER, None)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(demote, [room.ann.user_id, room.bob.user_id]))
    assert set(answers) == {None, ErrorCode.INVALID_STATE}


def test_parts_sent_at_once_are_all_kept(room: Room) -> None:
    size = 65_536
    data = bytes(range(256)) * (size * 6 // 256)
    room.context.settings.values["storage.part_bytes"] = size  # type: ignore[index]
    body = UploadIn(filename="a", size=len(data), sha256=hashlib.sha256(data).hexdigest())
    upload_id = room.write(uploads.create, room.context, room.ann, body)["id"]
    numbers = [n for n in range(1, 7) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: room.send(upload_id, n, data[(n - 1) * size : n * size]), numbers))
    assert room.read(UploadPart.select().count) == 6
    assert room.complete(upload_id)["sha256"] == hashlib.sha256(data).hexdigest()
    with room.context.database.connection():
        for row in Outbox.select():
            assert outbox.deliver(room.context, row.id)
    assert [info.size for info in room.context.storage.list("uploads")] == [len(data)]


def test_a_dataset_from_bytes_to_statistics(room: Room, tmp_path: Path) -> None:
    model = room.model(tmp_path)
    found = room.dataset()
    assert (found["status"], found["schema_kind"]) == ("ready", "prompt_completion")
    assert found["stats"]["tokens"]["tokenizer"] == model.name
    ref = room.read(lambda: datasets.dataset_ref(Dataset.get_by_id(found["id"])))
    assert (ref.row_count, ref.file.size, ref.schema_kind) == (30, len(ROWS), "prompt_completion")
    with pytest.raises(ParsynError) as caught:
        room.read(datasets.get, room.bob, found["id"])
    assert caught.value.code is ErrorCode.NOT_FOUND
    room.write(datasets.delete, room.context, room.ann, found["id"])
    assert room.read(Dataset.select().count) == 0


def test_a_role_on_a_project_opens_what_it_should(room: Room) -> None:
    found = room.dataset()
    patch = DatasetPatch(name="new")

    def join(role: ProjectRole) -> None:
        ProjectMember.delete().where(ProjectMember.user == room.bob.user_id).execute()
        ProjectMember.create(project=found["project_id"], user=room.bob.user_id, role=role)

    room.write(join, ProjectRole.VIEWER)
    assert room.read(datasets.get, room.bob, found["id"])["name"] == "rows"
    with pytest.raises(ParsynError) as caught:
        room.write(datasets.change, room.context, room.bob, found["id"], patch)
    assert caught.value.code is ErrorCode.FORBIDDEN
    room.write(join, ProjectRole.EDITOR)
    changed = room.write(datasets.change, room.context, room.bob, found["id"], patch)
    assert changed["name"] == "new"


def test_lost_validations_are_found(room: Room) -> None:
    body = DatasetIn(name="rows", upload_id=room.upload())
    made = room.write(datasets.create, room.context, room.ann, body)
    room.context.queue.redis.flushdb()
    assert room.write(datasets.find_lost, room.context) == 0
    with shifted(datasets.LEASE_SECONDS + 1):
        assert room.write(datasets.find_lost, room.context) == 1
        assert room.write(datasets.find_lost, room.context) == 0
    assert room.read(Dataset.get_by_id, made["id"]).tries == 1
    assert room.context.queue.rq.count == 1


def test_slugs_are_free_even_for_twins(room: Room, tmp_path: Path) -> None:
    slugs = [room.model(tmp_path / str(n), "My Model (é) 2").slug for n in range(3)]
    assert slugs == ["my-model-e-2", "my-model-e-2-2", "my-model-e-2-3"]
    assert room.model(tmp_path, "42").slug == "model-42"
    assert room.model(tmp_path, "数据").slug == "model"


def test_a_fine_tune_is_tied_to_where_it_came_from(room: Room, tmp_path: Path) -> None:
    base, dataset = room.model(tmp_path), room.dataset()
    stored = room.context.storage.put("jobs/1/adapter_config.json", [b"{}"])
    ref = FileRef(path="adapter_config.json", key=stored.key, size=2, sha256=str(stored.sha256))

    def finish() -> Model:
        job = Job.create(
            user=room.ann.user_id, project=base.project_id, kind="training", name="Bot",
            status=JobStatus.COMPLETED, model=base, dataset=dataset["id"],
            request={"trainer": "sft", "config": {}, "export": [], "worker_selection": {}},
        )  # fmt: skip
        return models.create_from_training(room.context, job, Manifest(files=(ref,)))

    tuned = room.write(finish)
    graph = room.read(lineage.graph, room.ann, tuned.id)
    assert sorted(node["kind"] for node in graph["nodes"]) == ["dataset", "job", "model", "model"]
    folder = room.read(lambda: tokenizers.folder_of(room.context, Model.get_by_id(tuned.id)))
    assert (folder / "tokenizer.json").read_bytes() == model_files()["tokenizer.json"]
    with pytest.raises(ParsynError, match="the fine-tune Bot"):
        room.write(models.delete, room.context, room.ann, base.id)
    seen = room.read(overview.overview, room.ann)
    assert (seen["models"], seen["datasets"], len(seen["recent_jobs"])) == (2, 1, 1)
    assert room.read(overview.overview, room.bob)["models"] == 0
    room.write(models.delete, room.context, room.ann, tuned.id)
    room.write(models.delete, room.context, room.ann, base.id)
    assert room.read(Model.select().count) == 0
