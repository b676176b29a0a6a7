"""Models: what there is, and what jobs make of them (`imports` brings others)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import peewee

from parsyn.errors import ErrorCode, ParsynError, not_found
from parsyn.services import audit, datasets, model_facts, outbox, uploads
from parsyn.services.context import Context
from parsyn.services.model_facts import Facts, StoredFiles
from parsyn.services.model_shapes import as_out, free_slug, model_ref, publish
from parsyn.services.principal import Principal, require_role
from parsyn.store.jobs import Artifact, Job
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import visible
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.events import EventType
from parsyn.wire.refs import FileRef
from parsyn.wire.states import JOB_TERMINAL, JobKind, ModelSource, ModelState, ProjectRole
from parsyn.wire.tasks import Failure, Manifest

__all__ = [
    "as_out",
    "change",
    "create_from_training",
    "delete",
    "files",
    "fill_from_download",
    "find",
    "get",
    "insert",
    "mark_failed",
    "model_ref",
    "named",
    "page",
    "publish",
]

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


def insert(
    user_id: int,
    project_id: int,
    name: str,
    source: ModelSource,
    refs: Iterable[FileRef],
    facts: Facts,
    **more: Any,
) -> Model:
    """A model that is ready, with its files; `more` are columns that differ from the usual."""
    kept = list(refs)
    row = named(
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


def named(project_id: int, name: str, **values: Any) -> Model:
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
    row = insert(
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
