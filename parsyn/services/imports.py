"""How a model comes: from the Hugging Face Hub by an agent, as uploaded files, or from a folder."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.services import model_facts, models, tasks, uploads
from parsyn.services.context import Context
from parsyn.services.model_facts import Facts, FolderFiles, StoredFiles
from parsyn.services.principal import Principal, project_for
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.store.projects import Project
from parsyn.store.users import User
from parsyn.wire.api.models import ModelIn
from parsyn.wire.refs import FileRef, ModelRef
from parsyn.wire.states import JobKind, ModelSource
from parsyn.wire.tasks import DownloadSpec

HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
CHUNK = 1 << 20


def create(
    context: Context, who: Principal, body: ModelIn, facts: Facts | None = None
) -> dict[str, Any]:
    """Register a model of the Hub, whose fetching is queued, or make one of uploaded files.

    `facts` are those of `facts_of_uploads`, which is slow and so runs before the transaction.
    """
    project_id = project_for(who, body.project_id)
    if body.source == "hub":
        return _create_from_hub(context, who, body, project_id)
    assert facts is not None
    found = [
        uploads.usable(who, upload_id, "model", ["upload_ids", place])
        for place, upload_id in enumerate(body.upload_ids or [])
    ]
    refs = [
        FileRef(path=row.filename, key=row.key, size=row.size, sha256=row.sha256) for row in found
    ]
    row = models.insert(who.user_id, project_id, body.name, ModelSource.UPLOAD, refs, facts)
    models.publish(context, row.id)
    return models.get(who, row.id)


def _create_from_hub(
    context: Context, who: Principal, body: ModelIn, project_id: int
) -> dict[str, Any]:
    if not HUB_ID.fullmatch(body.hub_id or ""):
        raise invalid(["hub_id"], "A Hub id is a name like org/model, not an address or a path.")
    if body.revision is not None and not REVISION.fullmatch(body.revision):
        raise invalid(["revision"], "A revision is a branch, a tag or a commit.")
    row = models.named(
        project_id,
        body.name,
        user=who.user_id,
        source=ModelSource.HUB,
        hub_id=body.hub_id,
        revision=body.revision,
        formats=["hf"],
    )
    _queue_fetching(context, who, row)
    models.publish(context, row.id)
    return models.get(who, row.id)


def _queue_fetching(context: Context, who: Principal, model: Model) -> None:
    """Queue the fetching of a registered model with a `hub_id`; its `job_id` is set."""
    job = Job.create(
        user=who.user_id,
        project=model.project_id,
        kind=JobKind.IMPORT,
        name=f"Import of {model.name}"[:200],
        model=model,
    )
    ref = ModelRef(
        id=model.id,
        name=model.name,
        slug=model.slug,
        hub_id=model.hub_id,
        revision=model.revision,
    )
    Model.update(job_id=job.id).where(Model.id == model.id).execute()
    tasks.queue(context, job, DownloadSpec(model=ref), "Created.")


def facts_of_uploads(context: Context, who: Principal, upload_ids: list[int]) -> Facts:
    """Check uploaded files before they become a model. Raises 422 with one sentence."""
    keys: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for place, upload_id in enumerate(upload_ids):
        try:
            row = uploads.find(who, upload_id)
        except ParsynError:
            raise invalid(["upload_ids", place], "There is no such upload.") from None
        if row.filename in keys:
            raise invalid(["upload_ids", place], f"{row.filename} is there twice.")
        if row.status != uploads.COMPLETE:
            raise invalid(["upload_ids", place], f"The upload of {row.filename} is not complete.")
        keys[row.filename], sizes[row.filename] = row.key, row.size
    return model_facts.inspect(StoredFiles(context.storage, keys, sizes))


def import_folder(context: Context, user: User, path: Path, name: str) -> Model:
    """Copy a Hugging Face folder of this machine into the storage, as a model of the user.

    Raises ParsynError with one sentence for what is no such folder.
    """
    sizes = _folder_sizes(path)
    facts = model_facts.inspect(FolderFiles(path, sizes))
    folder = f"models/{secrets.token_hex(12)}"
    refs: list[FileRef] = []
    try:
        for file in sorted(sizes):
            # One by one, so that what was stored before a failure is known.
            refs += [_store_file(context, path / file, f"{folder}/{file}")]
        return context.database.write_sync(_import, context, user, name, refs, facts)
    except BaseException:
        for ref in refs:
            context.storage.delete(ref.key)
        raise


def _folder_sizes(path: Path) -> dict[str, int]:
    try:
        names = {entry.name: entry.stat().st_size for entry in path.iterdir() if entry.is_file()}
    except NotADirectoryError:
        raise ParsynError(ErrorCode.UNSUPPORTED, f"{path} is no folder.") from None
    except OSError as error:
        raise ParsynError(
            ErrorCode.UNSUPPORTED, f"{path} cannot be read: {error.strerror}."
        ) from error
    return {name: size for name, size in names.items() if model_facts.is_kept(name)}


def _store_file(context: Context, path: Path, key: str) -> FileRef:
    with path.open("rb") as file:
        stored = context.storage.put(key, iter(lambda: file.read(CHUNK), b""))
    return FileRef(path=path.name, key=key, size=stored.size, sha256=str(stored.sha256))


def _import(context: Context, user: User, name: str, refs: list[FileRef], facts: Facts) -> Model:
    project = Project.get(Project.owner == user)
    row = models.insert(user.id, project.id, name, ModelSource.IMPORT, refs, facts)
    models.publish(context, row.id)
    return row
