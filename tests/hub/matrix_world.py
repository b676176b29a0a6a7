"""One of everything in the owner's project, and credentials of every kind."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from parsyn.clock import now
from parsyn.services import accounts
from parsyn.services.accounts import digest
from parsyn.services.context import Context
from parsyn.store.conversations import Conversation, Message
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Artifact, Job, Preset, Task
from parsyn.store.models import Model, ModelFile
from parsyn.store.uploads import Upload
from parsyn.store.users import ApiKey, User
from parsyn.store.workers import MasterKey, Worker
from parsyn.wire.states import JobKind, JobStatus, ModelState, Scope, StatsStatus, TaskKind
from tests.hub.conftest import Person, make_key

WORKER_KEY, ENROLMENT_KEY = "wkr_of_a_worker", "enroll_many"
EXPIRED_KEY, REVOKED_KEY, DISABLED_KEY = "psn_expired", "psn_revoked", "psn_disabled"
ROW = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}\n'


@dataclass
class World:
    """Ids of the rows, by the names that path values have; `rest` has those that bodies need."""

    people: dict[str, Person]
    context: Context
    ids: dict[str, Any]
    keys: dict[Scope, str] = field(default_factory=dict)

    def without(self, scope: Scope) -> Person:
        """The owner with a key that has every scope but one."""
        scopes = [other for other in Scope if other is not scope]
        owner = self.people["owner"]
        if scope not in self.keys:
            self.keys[scope] = make_key(self.context, owner.user_id, scopes)
        return replace(owner, key=self.keys[scope])

    def with_key(self, key: str) -> Person:
        return replace(self.people["anonymous"], key=key)


def build(people: dict[str, Person], context: Context) -> World:
    """Store the rows; every one is the owner's."""
    owner = people["owner"]
    owned = {"user": owner.user_id, "project": owner.project_id}
    stored = context.storage.put("uploads/matrix/file", [ROW])
    with context.database.transaction():
        ids = _data(owned, stored.size, str(stored.sha256))
        ids |= _jobs(owned, ids)
        ids |= _rest(owned, ids)
        _odd_keys(owner)
    return World(people, context, ids)


def _data(owned: dict[str, int], size: int, sha256: str) -> dict[str, int]:
    file = {"key": "uploads/matrix/file", "size": size, "sha256": sha256}
    dataset = Dataset.create(
        **owned, **file, name="rows", filename="rows.jsonl", status="ready", file_format="jsonl",
        schema_kind="messages", row_count=1, columns=["messages"],
        stats_status=StatsStatus.READY,
        stats={"rows": 1, "columns": {}, "duplicates": {"exact": 0}},
    )  # fmt: skip
    model = Model.create(
        **owned, name="Base", slug="base", state=ModelState.READY, source="import",
        formats=["hf"], architecture="LlamaForCausalLM", context_length=2048,
    )  # fmt: skip
    ModelFile.create(**file, model=model, path="config.json")
    upload = Upload.create(
        **owned, filename="a.jsonl", size=4, purpose="dataset", part_size=65_536,
        key="uploads/open/file", expires_at=now() + 3600,
    )  # fmt: skip
    complete = Upload.create(
        **owned, **file, filename="rows.jsonl", purpose="dataset", part_size=65_536,
        status="complete", expires_at=now() + 3600,
    )  # fmt: skip
    return {
        "dataset_id": dataset.id, "model_id": model.id, "upload_id": upload.id,
        "complete_upload_id": complete.id, "n": 1,
    }  # fmt: skip


def _jobs(owned: dict[str, int], ids: dict[str, int]) -> dict[str, int]:
    of = {**owned, "model": ids["model_id"], "dataset": ids["dataset_id"]}
    request = {
        "trainer": "sft", "config": {}, "export": [], "distributed": {"enabled": False},
        "worker_selection": {"mode": "auto"}, "evaluator": "perplexity", "format": "gguf",
    }  # fmt: skip
    found: dict[str, int] = {}
    for kind in (JobKind.TRAINING, JobKind.EVALUATION, JobKind.EXPORT):
        job = Job.create(**of, kind=kind, name=kind, status=JobStatus.PENDING, request=request)
        found[f"{kind}_id"] = job.id
    artifact = Artifact.create(
        job=found["training_id"], kind="model", path="config.json", key="uploads/matrix/file",
        size=len(ROW), sha256=hashlib.sha256(ROW).hexdigest(),
    )  # fmt: skip
    Task.create(job=found["export_id"], kind=TaskKind.EXPORT, spec={})
    return {**found, "artifact_id": artifact.id}


def _rest(owned: dict[str, int], ids: dict[str, int]) -> dict[str, int]:
    worker = Worker.create(**owned, name="rig", key_hash=digest(WORKER_KEY))
    master = MasterKey.create(
        **owned, name="rack", prefix="enroll_", key_hash=digest(ENROLMENT_KEY)
    )
    talk = Conversation.create(**owned, model=ids["model_id"], title="Talk")
    message = Message.create(conversation=talk, role="assistant", content="Yo")
    preset = Preset.create(**owned, name="Ours", trainer="sft")
    owner = User.get_by_id(owned["user"])
    _, session = accounts.start_session(owner, 1, "", "")
    key = ApiKey.create(
        user=owner, name="k", prefix="psn_", key_hash=digest("psn_k"), scopes=["read"]
    )
    return {
        "worker_id": worker.id, "master_id": master.id, "conversation_id": talk.id,
        "session_id": session.id, "api_key_id": key.id, "user_id": owner.id,
        "preset_id": preset.id, "message_id": message.id,
    }  # fmt: skip


def _odd_keys(owner: Person) -> None:
    """Keys that were good once: expired, deleted, of a user who is disabled."""
    scopes = list(Scope)
    more = {"prefix": "psn_", "scopes": scopes}
    ApiKey.create(
        user=owner.user_id, name="x", key_hash=digest(EXPIRED_KEY), expires_at=now() - 1, **more
    )
    revoked = ApiKey.create(user=owner.user_id, name="x", key_hash=digest(REVOKED_KEY), **more)
    revoked.delete_instance()
    gone = accounts.create_user("gone@example.org", "Gone", "x", password_hash="x")
    User.update(disabled=True).where(User.id == gone.id).execute()
    ApiKey.create(user=gone, name="x", key_hash=digest(DISABLED_KEY), **more)
