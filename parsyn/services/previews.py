"""Rows of a dataset to look at, read by the child that reads users' files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parsyn.errors import invalid
from parsyn.rows.jail import preview_file
from parsyn.rows.requests import PreviewRequest
from parsyn.rows.spans import TrainOn
from parsyn.services import datasets, tokenizers, validation
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.datasets import Dataset
from parsyn.store.models import Model
from parsyn.store.projects import visible

PREVIEW_SECONDS = 30.0


@dataclass(frozen=True)
class Asked:
    """What is to be read; `model_dir` is where the tokenizer lies."""

    row: Dataset
    model_dir: Path | None


def prepare(context: Context, who: Principal, dataset_id: int, model_id: int | None) -> Asked:
    """Raises 404 for the dataset, 422 for the model, where they are not theirs to see."""
    row = datasets.find(who, dataset_id)
    if model_id is None:
        return Asked(row, None)
    model = Model.get_or_none((Model.id == model_id) & visible(Model, who.user_id))
    if model is None:
        raise invalid(["query", "model_id"], "There is no such model.")
    return Asked(row, tokenizers.folder_of(context, model))


def read(
    context: Context, asked: Asked, offset: int, limit: int, train_on: TrainOn
) -> dict[str, Any]:
    """As `PreviewOut` wants it. Reads a file, so call it on a thread. Raises 422 `bad_data`."""
    row = asked.row
    with context.storage.as_file(row.key) as path:
        request = PreviewRequest(
            validation.source_of(row, str(path)),
            offset=offset,
            limit=limit,
            model_dir=None if asked.model_dir is None else str(asked.model_dir),
            train_on=train_on,
        )
        found = preview_file(request, timeout=PREVIEW_SECONDS)
    total = None if row.row_count is None else row.row_count + (row.bad_row_count or 0)
    items = [asdict(item) for item in found.items]
    return {"items": items, "total": total, "template": found.template}
