"""Datasets: made of an upload or of a small file, looked at, measured, downloaded."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any, get_args

from pydantic import ValidationError
from quart import Response, request

from parsyn.errors import ParsynError, invalid
from parsyn.hub.hub import hub, principal
from parsyn.hub.queries import IN_NAME, IN_PROJECT, choice, optional_id, search_text
from parsyn.hub.routing import Api, integer, paging, validation_problem
from parsyn.hub.streaming import TRANSFERS, send_object
from parsyn.plugin.storage import ObjectInfo
from parsyn.rows.spans import TrainOn
from parsyn.services import datasets, previews, uploads
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.wire.api.base import Page
from parsyn.wire.api.datasets import (
    DatasetIn,
    DatasetOut,
    DatasetPatch,
    PreviewOut,
    ReportOut,
    StatsOut,
)
from parsyn.wire.states import DatasetStatus, Scope

api = Api("datasets")
CHUNK = 1 << 20
# Each reads a file in a child process of its own; more at once would not be faster.
READERS = ThreadPoolExecutor(2, thread_name_prefix="preview")
MIMETYPES = {
    "jsonl": "application/x-ndjson",
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "text": "text/plain",
}


@api.endpoint(
    "GET",
    "/datasets",
    scope=Scope.READ,
    answers=Page[DatasetOut],
    query={"project_id": IN_PROJECT, "status": "In this state.", "q": IN_NAME},
)
async def list_datasets() -> dict[str, Any]:
    """Datasets that the user may see, newest first; `project_id`, `status`, `q` filter."""
    limit, offset = paging()
    return await hub().context.database.read(
        datasets.page,
        principal(),
        limit,
        offset,
        project_id=optional_id("project_id"),
        status=choice("status", tuple(DatasetStatus)),
        query=search_text(),
    )


@api.endpoint(
    "POST",
    "/datasets",
    scope=Scope.WRITE,
    body=DatasetIn,
    answers=DatasetOut,
    status=201,
    idempotent=True,
    form=True,
)
async def create(body: DatasetIn | None) -> dict[str, Any]:
    """A dataset of a complete upload, or of a small file sent as multipart/form-data."""
    context, who = hub().context, principal()
    if body is not None:
        return await context.database.write(datasets.create, context, who, body)
    return await _create_from_form(context, who)


@api.endpoint(
    "POST", "/datasets/sample", scope=Scope.WRITE, answers=DatasetOut, status=201, idempotent=True
)
async def create_sample() -> dict[str, Any]:
    """The sample that comes with Parsyn: support answers of an invented product."""
    content = resources.files("parsyn.demo").joinpath("sample.jsonl").read_bytes()
    given = {"name": "Sample: support answers"}
    return await _create_from(hub().context, principal(), "sample.jsonl", [content], given)


@api.endpoint("GET", "/datasets/<int:dataset_id>", scope=Scope.READ, answers=DatasetOut)
async def get(dataset_id: int) -> dict[str, Any]:
    """One dataset."""
    return await hub().context.database.read(datasets.get, principal(), dataset_id)


@api.endpoint(
    "PATCH",
    "/datasets/<int:dataset_id>",
    scope=Scope.WRITE,
    body=DatasetPatch,
    answers=DatasetOut,
)
async def change(dataset_id: int, body: DatasetPatch) -> dict[str, Any]:
    """Rename a dataset, or read its file anew with another mapping."""
    context = hub().context
    return await context.database.write(datasets.change, context, principal(), dataset_id, body)


@api.endpoint("DELETE", "/datasets/<int:dataset_id>", scope=Scope.WRITE, status=204)
async def delete(dataset_id: int) -> None:
    """Delete a dataset and its file; not while a job uses it."""
    context = hub().context
    await context.database.write(datasets.delete, context, principal(), dataset_id)


@api.endpoint(
    "GET",
    "/datasets/<int:dataset_id>/preview",
    scope=Scope.READ,
    answers=PreviewOut,
    query={
        "offset": "How many rows to skip.",
        "limit": "How many rows, at most 100; 20 by default.",
        "model_id": "Render with this model's chat template and show its tokens.",
        "train_on": "What is learnt: completions (the default), all, last_turn.",
    },
)
async def preview(dataset_id: int) -> dict[str, Any]:
    """Rows raw and as messages; with `model_id` also rendered, with trained and masked tokens."""
    context, who = hub().context, principal()
    offset, limit = integer("offset", 0, 0, 2**31), integer("limit", 20, 1, 100)
    train_on: Any = choice("train_on", get_args(TrainOn)) or "completions"
    asked = await context.database.read(
        previews.prepare, context, who, dataset_id, optional_id("model_id")
    )
    return await asyncio.get_running_loop().run_in_executor(
        READERS, previews.read, context, asked, offset, limit, train_on
    )


@api.endpoint("GET", "/datasets/<int:dataset_id>/report", scope=Scope.READ, answers=ReportOut)
async def report(dataset_id: int) -> dict[str, Any]:
    """Every problem that validation found, with its row, line, column and count."""
    return await hub().context.database.read(datasets.report, principal(), dataset_id)


@api.endpoint("GET", "/datasets/<int:dataset_id>/stats", scope=Scope.READ, answers=StatsOut)
async def stats(dataset_id: int) -> dict[str, Any]:
    """Rows, columns, tokens with a histogram, exact duplicates."""
    return await hub().context.database.read(datasets.stats, principal(), dataset_id)


@api.endpoint("GET", "/datasets/<int:dataset_id>/download", scope=Scope.READ)
async def download(dataset_id: int) -> Response:
    """The file as it was uploaded; `Range` is honoured."""
    context = hub().context
    row = await context.database.read(datasets.find, principal(), dataset_id)
    plain = row.compression == "none"
    return send_object(
        context.storage,
        row.key,
        row.size,
        mimetype=MIMETYPES.get(row.file_format, "") if plain else "application/octet-stream",
        filename=row.filename,
        etag=row.sha256,
    )


# --- the small-file form ---------------------------------------------------------------------


async def _create_from_form(context: Context, who: Principal) -> dict[str, Any]:
    form, files = await request.form, await request.files
    file = files.get("file")
    if file is None:
        raise invalid(["file"], "The form needs the file in a field called `file`.")
    given = _form_fields(form)
    # Checked before a byte is stored; the id is set once there is one.
    _dataset_in({**given, "upload_id": 0})
    filename = uploads.plain_filename(file.filename or "")
    stream = file.stream
    return await _create_from(context, who, filename, iter(lambda: stream.read(CHUNK), b""), given)


async def _create_from(
    context: Context, who: Principal, filename: str, chunks: Iterable[bytes], given: dict[str, Any]
) -> dict[str, Any]:
    key = f"uploads/{secrets.token_hex(12)}/file"
    stored = await asyncio.get_running_loop().run_in_executor(
        TRANSFERS, context.storage.put, key, chunks
    )
    try:
        return await context.database.write(_adopt, context, who, filename, stored, given)
    except ParsynError:
        await asyncio.get_running_loop().run_in_executor(TRANSFERS, context.storage.delete, key)
        raise


def _adopt(
    context: Context, who: Principal, filename: str, stored: ObjectInfo, given: dict[str, Any]
) -> dict[str, Any]:
    upload = uploads.adopt(who, filename, "dataset", stored)
    return datasets.create(context, who, _dataset_in({**given, "upload_id": upload.id}))


def _form_fields(form: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, text in form.items():
        given[name] = text
        if name == "mapping":
            try:
                given[name] = json.loads(text)
            except (ValueError, RecursionError):
                raise invalid(["mapping"], "The mapping in the form is not valid JSON.") from None
    return given


def _dataset_in(given: dict[str, Any]) -> DatasetIn:
    try:
        return DatasetIn.model_validate(given)
    except ValidationError as error:
        raise validation_problem(error) from None
