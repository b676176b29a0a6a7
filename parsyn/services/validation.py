"""What the jobs of a dataset do: read its file in a bounded child, then store what was found."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError
from parsyn.rows.jail import measure_file, validate_file
from parsyn.rows.requests import Source, Statistics, StatsRequest, ValidateRequest, ValidationReport
from parsyn.services import tokenizers
from parsyn.services.context import Context
from parsyn.services.datasets import LEASE_SECONDS, MEASURE, enqueue, publish
from parsyn.store.datasets import Dataset
from parsyn.wire.states import DatasetStatus, FileFormat, SchemaKind, StatsStatus

log = logging.getLogger(__name__)
SPARE_SECONDS = 30
# What the file, or its mapping, is to blame for; the rest is tried again.
OF_THE_FILE = frozenset(
    {ErrorCode.BAD_DATA, ErrorCode.TIMEOUT, ErrorCode.VALIDATION_FAILED, ErrorCode.NOT_FOUND}
)


def validate(context: Context, dataset_id: int, revision: int) -> None:
    """Read the whole file and store the verdict, unless a newer revision was asked for."""
    row = _current(context, dataset_id, revision)
    if row is None or row.status != DatasetStatus.VALIDATING:
        return
    with _lease(context, row):
        found = _verdict(context, row)
    context.database.write_sync(_store_verdict, context, row, found)


def measure(context: Context, dataset_id: int, revision: int) -> None:
    """Compute the statistics, with the tokens of the project's newest model that can be asked."""
    row = _current(context, dataset_id, revision)
    if row is None or row.stats_status != StatsStatus.RUNNING:
        return
    try:
        with _lease(context, row):
            found = _statistics(context, row)
    except ParsynError as error:
        if error.code not in OF_THE_FILE:
            raise
        log.info("dataset %d has no statistics: %s", row.id, error.detail)
        found = None
    context.database.write_sync(_store_statistics, context, row, found)


def source_of(row: Dataset, path: str) -> Source:
    """The dataset's file as validation has understood it."""
    kind = SchemaKind(row.schema_kind) if row.schema_kind else None
    return Source(path=path, filename=row.filename, schema_kind=kind, mapping=row.mapping)


def _current(context: Context, dataset_id: int, revision: int) -> Dataset | None:
    with context.database.connection():
        row: Dataset | None = Dataset.get_or_none(
            (Dataset.id == dataset_id) & (Dataset.revision == revision)
        )
        return row


def _timeout(context: Context) -> float:
    return max(SPARE_SECONDS, context.settings.integer("jobs.timeout_seconds") - SPARE_SECONDS)


@contextmanager
def _lease(context: Context, row: Dataset) -> Iterator[None]:
    """Keep saying that this dataset is being worked on, until the block ends."""
    ended = threading.Event()

    def extend() -> None:
        Dataset.update(lease_until=now() + LEASE_SECONDS).where(
            (Dataset.id == row.id) & (Dataset.revision == row.revision)
        ).execute()

    def go_on() -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            context.database.write_sync(extend)

    context.database.write_sync(extend)
    thread = threading.Thread(target=go_on, name=f"lease-dataset-{row.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# --- validation ------------------------------------------------------------------------------


def _verdict(context: Context, row: Dataset) -> dict[str, Any]:
    try:
        with context.storage.as_file(row.key) as path:
            source = Source(path=str(path), filename=row.filename, mapping=row.mapping)
            request = ValidateRequest(source, strict=row.strict)
            report = validate_file(request, timeout=_timeout(context))
    except ParsynError as error:
        if error.code not in OF_THE_FILE:
            raise
        return _refused(error.detail, _code(error))
    if row.requested_format not in ("auto", report.file_format) and report.file_format:
        return _wrong_format(row.requested_format, report.file_format)
    return _columns_of(report)


def _columns_of(report: ValidationReport) -> dict[str, Any]:
    names = (
        "status", "summary", "file_format", "compression", "schema_kind", "columns", "row_count",
        "bad_row_count", "needs_mapping", "mapping", "candidates", "problems_count",
    )  # fmt: skip
    found = {name: getattr(report, name) for name in names}
    return {
        **found,
        "suggestions": [asdict(one) for one in report.suggestions if report.needs_mapping],
        "problems": [asdict(problem) for problem in report.problems],
    }


def _code(error: ParsynError) -> str:
    return "bad_mapping" if error.code is ErrorCode.VALIDATION_FAILED else str(error.code)


def _refused(message: str, code: str) -> dict[str, Any]:
    problem = {"row": None, "line": None, "column": None, "code": code, "message": message}
    return {
        "status": DatasetStatus.INVALID,
        "summary": message,
        "problems": [{**problem, "count": 1, "level": "error"}],
        "problems_count": 1,
    }


def _wrong_format(asked: str, found: FileFormat) -> dict[str, Any]:
    return _refused(
        f"You said that the file is {asked}, but it is {found}. "
        "Upload it again without naming the format.",
        "format_mismatch",
    )


def _store_verdict(context: Context, row: Dataset, found: dict[str, Any]) -> None:
    measured = found["status"] == DatasetStatus.READY
    stored = (
        Dataset.update(
            **found,
            tries=0,
            lease_until=now() + LEASE_SECONDS,
            stats_status=StatsStatus.RUNNING if measured else StatsStatus.NONE,
        )
        .where(
            (Dataset.id == row.id)
            & (Dataset.revision == row.revision)
            & (Dataset.status == DatasetStatus.VALIDATING)
        )
        .execute()
    )
    if not stored:
        return
    fresh = Dataset.get_by_id(row.id)
    if measured:
        enqueue(context, fresh, MEASURE)
    publish(context, fresh)


# --- statistics ------------------------------------------------------------------------------


def _statistics(context: Context, row: Dataset) -> dict[str, Any]:
    with context.database.connection():
        model = tokenizers.newest_with_tokenizer(row.project_id)
        folder = None if model is None else tokenizers.folder_of(context, model)
    if model is not None and folder is not None:
        try:
            return _named(_measured(context, row, str(folder)), model.name)
        except ParsynError as error:
            if error.code is not ErrorCode.BAD_DATA:
                raise
            log.warning("model %d cannot count tokens: %s", model.id, error.detail)
    return _named(_measured(context, row, None), None)


def _measured(context: Context, row: Dataset, model_dir: str | None) -> Statistics:
    with context.storage.as_file(row.key) as path:
        request = StatsRequest(source_of(row, str(path)), model_dir=model_dir)
        return measure_file(request, timeout=_timeout(context))


def _named(found: Statistics, model_name: str | None) -> dict[str, Any]:
    stats = asdict(found)
    if stats["tokens"] is not None and model_name is not None:
        stats["tokens"]["tokenizer"] = model_name
    return stats


def _store_statistics(context: Context, row: Dataset, found: dict[str, Any] | None) -> None:
    stored = (
        Dataset.update(
            stats=found, stats_status=StatsStatus.FAILED if found is None else StatsStatus.READY
        )
        .where(
            (Dataset.id == row.id)
            & (Dataset.revision == row.revision)
            & (Dataset.stats_status == StatsStatus.RUNNING)
        )
        .execute()
    )
    if stored:
        publish(context, Dataset.get_by_id(row.id))
