"""Models: imported, fetched from the Hugging Face Hub, or made by a training."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import peewee

from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.services import audit, datasets, model_facts, outbox, uploads
from parsyn.services.context import Context
from parsyn.services.model_facts import Facts, FolderFiles, StoredFiles
from parsyn.services.model_shapes import as_out, free_slug, model_ref, publish
from parsyn.services.principal import Principal, project_for, require_role
from parsyn.store.jobs import Artifact, Job
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import Project, visible
from parsyn.store.users import User
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.models import ModelIn
from parsyn.wire.events import EventType
from parsyn.wire.refs import FileRef
from parsyn.wire.states import JOB_TERMINAL, JobKind, ModelSource, ModelState, ProjectRole
from parsyn.wire.tasks import Failure, Manifest

__all__ = [
    "as_out",
    "change",
    "create",
    "create_from_training",
    "delete",
    "files",
    "fill_from_download",
    "find",
    "get",
    "import_folder",
    "mark_failed",
    "model_ref",
    "page",
    "publish",
]

HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
CHUNK = 1 << 20
SLUG_TRIES = 10


def page(
    who: Principal, limit: int, offset: int, *, project_id: int | None, state: str, query: str
) -> dict[str, Any]:
    """The models that the user may see, newest first."""
    rows = Model.select().where(visible(Model, who.user_id))
    if project_id is not None:
        rows = rows.where(Model.project == project_id)
    if state:
        rows = rows.where(Model.state == state)
    if query:
        rows = rows.where(Model.name.contains(query))
    found = rows.order_by(Model.id.desc()).limit(limit).offset(offset)
    return {"items": [as_out(row) for row in found], "total": rows.count()}


def find(who: Principal, model_id: int, at_least: ProjectRole = ProjectRole.VIEWER) -> Model:
    """Raises 404 for what is not theirs to see, 403 below the role."""
    row: Model | None = Model.get_or_none((Model.id == model_id) & visible(Model, who.user_id))
    if row is None:
        raise not_found("model")
    require_role(who, row.project_id, at_least)
    return row


def get(who: Principal, model_id: int) -> dict[str, Any]:
    """As GET answers it."""
    return as_out(find(who, model_id))


def files(who: Principal, model_id: int) -> list[ModelFile]:
    """The model's files in path order, as far as they are in our storage."""
    row = find(who, model_id)
    return list(ModelFile.select().where(ModelFile.model == row).order_by(ModelFile.path))


def change(context: Context, who: Principal, model_id: int, name: str | None) -> dict[str, Any]:
    """Rename; the slug stays, so that programs go on finding the model."""
    row = find(who, model_id, ProjectRole.EDITOR)
    if name is not None:
        Model.update(name=name).where(Model.id == row.id).execute()
        publish(context, row.id)
    return get(who, row.id)


def delete(context: Context, who: Principal, model_id: int) -> None:
    """Raises 409 while a fine-tune or a job that has not ended needs it."""
    row = find(who, model_id, ProjectRole.EDITOR)
    needs = _needed_by(row)
    if needs:
        raise ParsynError(
            ErrorCode.INVALID_STATE,
            f"{row.name} is needed by {', '.join(needs[:5])}. Delete or cancel that first.",
        )
    keys = [file.key for file in row.files]
    for batch in peewee.chunked(keys, 500):
        Artifact.delete().where(Artifact.key.in_(batch)).execute()
    Model.delete().where(Model.id == row.id).execute()
    audit.record(who, AuditAction.MODEL_DELETED, f"model:{row.id}", row.project_id, name=row.name)
    uploads.delete_unused(context, keys)
    gone = {"id": row.id, "deleted": True}
    context.publish(EventType.MODEL_STATE, f"project:{row.project_id}", gone)


def _needed_by(row: Model) -> list[str]:
    tunes = Model.select().where(Model.base_model == row).order_by(Model.id)
    jobs = Job.select().where((Job.model == row) & Job.status.not_in(list(JOB_TERMINAL)))
    return [f"the fine-tune {tune.name}" for tune in tunes] + [
        f"{job.name} (job {job.id}, {job.status})" for job in jobs.order_by(Job.id)
    ]


# --- new ones --------------------------------------------------------------------------------


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
    row = _insert(who.user_id, project_id, body.name, ModelSource.UPLOAD, refs, facts)
    publish(context, row.id)
    return get(who, row.id)


def _create_from_hub(
    context: Context, who: Principal, body: ModelIn, project_id: int
) -> dict[str, Any]:
    from parsyn.services import imports

    if not HUB_ID.fullmatch(body.hub_id or ""):
        raise invalid(["hub_id"], "A Hub id is a name like org/model, not an address or a path.")
    if body.revision is not None and not REVISION.fullmatch(body.revision):
        raise invalid(["revision"], "A revision is a branch, a tag or a commit.")
    row = _named(
        project_id,
        body.name,
        user=who.user_id,
        source=ModelSource.HUB,
        hub_id=body.hub_id,
        revision=body.revision,
        formats=["hf"],
    )
    imports.create(context, who, row)
    publish(context, row.id)
    return get(who, row.id)


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
    row = _insert(user.id, project.id, name, ModelSource.IMPORT, refs, facts)
    publish(context, row.id)
    return row


def _insert(
    user_id: int,
    project_id: int,
    name: str,
    source: ModelSource,
    refs: Iterable[FileRef],
    facts: Facts,
    **more: Any,
) -> Model:
    kept = list(refs)
    row = _named(
        project_id,
        name,
        **{
            "user": user_id,
            "state": ModelState.READY,
            "source": source,
            "architecture": facts.architecture,
            "parameters": facts.parameters,
            "context_length": facts.context_length,
            "chat_template": facts.chat_template,
            "license": facts.license,
            "formats": ["hf"],
            "size": sum(ref.size for ref in kept),
            **more,
        },
    )
    _insert_files(row, kept)
    if row.base_model_id is None:
        datasets.count_again(project_id)
    return row


def _named(project_id: int, name: str, **values: Any) -> Model:
    """A new row with a slug of its own, also when twins are made at the same moment."""
    for _ in range(SLUG_TRIES):
        slug = free_slug(project_id, name)
        try:
            with Model._meta.database.atomic():
                row: Model = Model.create(project=project_id, name=name, slug=slug, **values)
                return row
        except peewee.IntegrityError:
            continue
    raise ParsynError(ErrorCode.CONFLICT, f"Others make models called {name} now; try again.")


def _insert_files(row: Model, refs: Iterable[FileRef]) -> None:
    for ref in refs:
        ModelFile.create(model=row, path=ref.path, key=ref.key, size=ref.size, sha256=ref.sha256)


# --- what jobs make --------------------------------------------------------------------------


def create_from_training(context: Context, job: Job, manifest: Manifest) -> Model:
    """The fine-tune that a training left: an adapter on the job's model, or whole weights."""
    base: Model = job.model
    paths = {file.path for file in manifest.files}
    is_adapter = "adapter_config.json" in paths
    stored = StoredFiles(
        context.storage,
        {file.path: file.key for file in manifest.files},
        {file.path: file.size for file in manifest.files},
    )
    facts = Facts(
        architecture=base.architecture,
        parameters=base.parameters,
        context_length=base.context_length,
        chat_template=model_facts.template_of(stored) or base.chat_template,
        license=base.license,
    )
    row = _insert(
        job.user_id,
        job.project_id,
        job.name,
        ModelSource.TRAINING,
        manifest.files,
        facts,
        formats=["adapter" if is_adapter else "hf"],
        base_model=base,
        training_job_id=job.id,
        job_id=job.id,
        version=_next_version(job, base),
    )
    publish(context, row.id)
    return row


def _next_version(job: Job, base: Model) -> int:
    """Fine-tunes of one base under one name count up."""
    alike = (
        (Model.project == job.project_id) & (Model.name == job.name) & (Model.base_model == base)
    )
    newest = Model.select(peewee.fn.MAX(Model.version)).where(alike).scalar()
    return int(newest or 0) + 1


def fill_from_download(context: Context, job: Job, manifest: Manifest) -> None:
    """A model of the Hub was fetched: keep what the agent found out, and the small files."""
    row: Model | None = job.model
    if row is None:
        outbox.delete_objects(context, [file.key for file in manifest.files])
        return
    stored = StoredFiles(
        context.storage,
        {file.path: file.key for file in manifest.files},
        {file.path: file.size for file in manifest.files},
    )
    facts = manifest.facts
    ModelFile.delete().where(ModelFile.model == row).execute()
    _insert_files(row, manifest.files)
    Model.update(
        state=ModelState.READY,
        failure=None,
        revision=facts.get("revision") or row.revision,
        architecture=facts.get("architecture"),
        parameters=facts.get("parameters"),
        context_length=facts.get("context_length"),
        license=facts.get("license"),
        chat_template=model_facts.template_of(stored),
        size=facts.get("size") or 0,
    ).where(Model.id == row.id).execute()
    datasets.count_again(row.project_id)
    publish(context, row.id)


def mark_failed(context: Context, job: Job, failure: Failure) -> None:
    """The job that was to bring or make a model ended without one."""
    if job.kind != JobKind.IMPORT or job.model_id is None:
        return
    Model.update(state=ModelState.FAILED, failure=failure.model_dump(mode="json")).where(
        (Model.id == job.model_id) & (Model.state != ModelState.READY)
    ).execute()
    publish(context, job.model_id)
