"""Datasets: one stored file each, validated and measured by jobs, trained on by tasks."""

from __future__ import annotations

from typing import Any

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.rows.mapping import BadMapping, plan_rows
from parsyn.rows.requests import ESTIMATE
from parsyn.services import audit, uploads
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for, require_role
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.projects import visible
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.datasets import DatasetIn, DatasetOut, DatasetPatch
from parsyn.wire.events import EventType
from parsyn.wire.refs import DatasetRef, FileRef
from parsyn.wire.states import (
    JOB_TERMINAL,
    Compression,
    DatasetStatus,
    FileFormat,
    ProjectRole,
    SchemaKind,
    StatsStatus,
)

LEASE_SECONDS = 60.0
MOST_TRIES = 5
VALIDATE, MEASURE = "validate", "measure"


def create(context: Context, who: Principal, body: DatasetIn) -> dict[str, Any]:
    """A dataset of a complete upload; its validation starts. Raises 422 for bad ids."""
    upload = uploads.usable(who, body.upload_id, "dataset", ["upload_id"])
    row = Dataset.create(
        user=who.user_id,
        project=project_for(who, body.project_id),
        name=body.name,
        filename=upload.filename,
        key=upload.key,
        size=upload.size,
        sha256=upload.sha256,
        requested_format=body.format,
        mapping=body.mapping,
        strict=body.strict,
        lease_until=now() + LEASE_SECONDS,
    )
    enqueue(context, row, VALIDATE)
    publish(context, row)
    return as_out(row)


def page(
    who: Principal, limit: int, offset: int, *, project_id: int | None, status: str, query: str
) -> dict[str, Any]:
    """The datasets that the user may see, newest first."""
    rows = Dataset.select().where(visible(Dataset, who.user_id))
    if project_id is not None:
        rows = rows.where(Dataset.project == project_id)
    if status:
        rows = rows.where(Dataset.status == status)
    if query:
        rows = rows.where(Dataset.name.contains(query))
    found = rows.order_by(Dataset.id.desc()).limit(limit).offset(offset)
    return {"items": [as_out(row) for row in found], "total": rows.count()}


def find(who: Principal, dataset_id: int, at_least: ProjectRole = ProjectRole.VIEWER) -> Dataset:
    """Raises 404 for what is not theirs to see, 403 below the role."""
    row: Dataset | None = Dataset.get_or_none(
        (Dataset.id == dataset_id) & visible(Dataset, who.user_id)
    )
    if row is None:
        raise not_found("dataset")
    require_role(who, row.project_id, at_least)
    return row


def get(who: Principal, dataset_id: int) -> dict[str, Any]:
    """As GET answers it."""
    return as_out(find(who, dataset_id))


def change(context: Context, who: Principal, dataset_id: int, body: DatasetPatch) -> dict[str, Any]:
    """Rename, or read the file anew with another mapping or strictness. Raises 422 when the
    mapping does not fit the file's columns."""
    row = find(who, dataset_id, ProjectRole.EDITOR)
    given = body.model_fields_set
    changes: dict[str, Any] = {"name": body.name} if body.name is not None else {}
    if "mapping" in given:
        if body.mapping and row.columns:
            _refuse_misfit(body.mapping, row.columns)
        changes["mapping"] = body.mapping or None
    if body.strict is not None:
        changes["strict"] = body.strict
    anew = "mapping" in changes or "strict" in changes
    if anew:
        changes |= {
            "status": DatasetStatus.VALIDATING,
            "stats_status": StatsStatus.NONE,
            "stats": None,
            "revision": Dataset.revision + 1,
            "tries": 0,
            "lease_until": now() + LEASE_SECONDS,
        }
    if changes:
        Dataset.update(changes).where(Dataset.id == row.id).execute()
    row = Dataset.get_by_id(row.id)
    if anew:
        enqueue(context, row, VALIDATE)
    publish(context, row)
    return as_out(row)


def delete(context: Context, who: Principal, dataset_id: int) -> None:
    """Raises 409 while a job that has not ended uses it."""
    row = find(who, dataset_id, ProjectRole.EDITOR)
    users = list(_unfinished_jobs(row.id))
    if users:
        named = ", ".join(f"{job.name} (job {job.id})" for job in users[:5])
        raise ParsynError(
            ErrorCode.INVALID_STATE,
            f"This dataset is used by {named}. Cancel or delete the job first.",
        )
    Dataset.delete().where(Dataset.id == row.id).execute()
    audit.record(
        who, AuditAction.DATASET_DELETED, f"dataset:{row.id}", row.project_id, name=row.name
    )
    uploads.delete_unused(context, [row.key])
    for topic in _topics(row):
        context.publish(EventType.DATASET_STATE, topic, {"id": row.id, "deleted": True})


def report(who: Principal, dataset_id: int) -> dict[str, Any]:
    """What validation found. Raises 409 while it still looks."""
    row = find(who, dataset_id)
    if row.status == DatasetStatus.VALIDATING:
        raise ParsynError(
            ErrorCode.INVALID_STATE, "The file is still being checked.", retry_after=2
        )
    return {"summary": row.summary or "", "problems": row.problems}


def stats(who: Principal, dataset_id: int) -> dict[str, Any]:
    """The statistics. Raises 409 where there are none (yet)."""
    row = find(who, dataset_id)
    if row.stats is not None:
        found: dict[str, Any] = row.stats
        return found
    why = {
        StatsStatus.RUNNING: "The statistics are still being computed.",
        StatsStatus.FAILED: "The statistics could not be computed; the report may say why.",
    }.get(StatsStatus(row.stats_status), "There are no statistics before the file is ready.")
    waits = row.stats_status == StatsStatus.RUNNING
    raise ParsynError(ErrorCode.INVALID_STATE, why, retry_after=2 if waits else None)


def dataset_ref(row: Dataset) -> DatasetRef:
    """The dataset as an agent gets it."""
    return DatasetRef(
        id=row.id,
        name=row.name,
        file=FileRef(path=row.filename, key=row.key, size=row.size, sha256=row.sha256),
        file_format=FileFormat(row.file_format),
        compression=Compression(row.compression),
        schema_kind=SchemaKind(row.schema_kind),
        mapping=row.mapping,
        row_count=row.row_count,
    )


# --- jobs ------------------------------------------------------------------------------------


def enqueue(context: Context, row: Dataset, task: str) -> None:
    """Ask for `validate` or `measure` of this revision."""
    context.enqueue(f"datasets.{task}", row.id, row.revision, key=_key(row, task))


def find_lost(context: Context) -> int:
    """Ask again for work whose job died or was lost; returns for how many datasets.

    The database is the record and the queue may be flushed, so the reconciler calls this in a
    write transaction every few seconds.
    """
    unfinished = (Dataset.status == DatasetStatus.VALIDATING) | (
        Dataset.stats_status == StatsStatus.RUNNING
    )
    lost = 0
    for row in Dataset.select().where(unfinished & (Dataset.lease_until < now())).limit(100):
        task = VALIDATE if row.status == DatasetStatus.VALIDATING else MEASURE
        if context.queue.waits(_key(row, task)):
            _extend(row, tries=row.tries)
            continue
        lost += 1
        if row.tries + 1 >= MOST_TRIES:
            _give_up(context, row, task)
            continue
        _extend(row, tries=row.tries + 1)
        enqueue(context, Dataset.get_by_id(row.id), task)
    return lost


def count_again(project_id: int) -> None:
    """A model has come: tokens that were only estimated so far are counted with its tokenizer.

    The reconciler starts the work; until it is done the estimates are shown.
    """
    measured = Dataset.select().where(
        (Dataset.project == project_id) & (Dataset.stats_status == StatsStatus.READY)
    )
    estimated = [
        row.id
        for row in measured
        if ((row.stats or {}).get("tokens") or {}).get("tokenizer") == ESTIMATE
    ]
    Dataset.update(
        stats_status=StatsStatus.RUNNING, lease_until=0.0, tries=0, revision=Dataset.revision + 1
    ).where(Dataset.id.in_(estimated)).execute()


def _key(row: Dataset, task: str) -> str:
    return f"dataset-{row.id}-{task}-{row.revision}-{row.tries}"


def _extend(row: Dataset, tries: int) -> None:
    Dataset.update(lease_until=now() + LEASE_SECONDS, tries=tries).where(
        (Dataset.id == row.id) & (Dataset.revision == row.revision)
    ).execute()


def _give_up(context: Context, row: Dataset, task: str) -> None:
    changes: dict[str, Any] = {"stats_status": StatsStatus.FAILED}
    if task == VALIDATE:
        changes = {
            "status": DatasetStatus.INVALID,
            "summary": f"The process that checks the file died {MOST_TRIES} times. "
            "The hub's log has the cause; a change of the mapping starts it again.",
        }
    Dataset.update(changes).where(
        (Dataset.id == row.id) & (Dataset.revision == row.revision)
    ).execute()
    publish(context, Dataset.get_by_id(row.id))


# --- shapes ----------------------------------------------------------------------------------


def as_out(row: Dataset) -> dict[str, Any]:
    """As `DatasetOut` wants it."""
    return row.as_dict()


def publish(context: Context, row: Dataset) -> None:
    """Tell the dashboards how the dataset stands."""
    data = DatasetOut.model_validate(as_out(row)).model_dump(mode="json")
    for topic in _topics(row):
        context.publish(EventType.DATASET_STATE, topic, data)


def _topics(row: Dataset) -> tuple[str, str]:
    return f"dataset:{row.id}", f"project:{row.project_id}"


def _unfinished_jobs(dataset_id: int) -> Any:
    uses = (Job.dataset == dataset_id) | (Job.validation_dataset == dataset_id)
    return Job.select().where(uses & Job.status.not_in(list(JOB_TERMINAL))).order_by(Job.id)


def _refuse_misfit(mapping: dict[str, str], columns: list[str]) -> None:
    try:
        plan_rows(None, mapping, columns)
    except BadMapping as bad:
        raise invalid(["mapping", *([bad.key] if bad.key else [])], bad.message) from None
