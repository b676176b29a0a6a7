"""The small files of a model that the hub itself needs, as a folder on this machine.

Preview and statistics read a model's tokenizer and chat template in the child that reads users'
files. The folder is a cache below the data directory: named by its contents, safe to delete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from parsyn.errors import ErrorCode, ParsynError
from parsyn.services.context import Context
from parsyn.store.models import Model, ModelFile
from parsyn.wire.states import ModelState

TOKENIZER = "tokenizer.json"
SMALL_FILES = (
    TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
LARGEST = 128 << 20
NEWEST_LOOKED_AT = 20


def newest_with_tokenizer(project_id: int) -> Model | None:
    """The newest ready model of a project whose tokenizer is in our storage."""
    rows = (
        Model.select()
        .where((Model.project == project_id) & (Model.state == ModelState.READY))
        .order_by(Model.id.desc())
        .limit(NEWEST_LOOKED_AT)
    )
    return next((row for row in rows if _holder(row) is not None), None)


def folder_of(context: Context, model: Model) -> Path:
    """A folder with the model's tokenizer and chat template.

    A fine-tune without its own has its base's. Raises 422 when there is none.
    """
    holder = _holder(model)
    if holder is None:
        raise ParsynError(
            ErrorCode.UNSUPPORTED,
            f"The hub has no tokenizer.json of {model.name}, so it cannot show its tokens.",
        )
    files = sorted(_small_files(holder), key=lambda file: str(file.path))
    named = "\n".join(f"{file.path} {file.sha256}" for file in files)
    folder = (
        context.settings.data_dir / "tokenizers" / hashlib.sha256(named.encode()).hexdigest()[:32]
    )
    if not folder.is_dir():
        _fill(context, folder, files)
    return folder


def _holder(model: Model) -> Model | None:
    """The model itself, or the nearest base that has a tokenizer."""
    seen: Model | None = model
    while seen is not None:
        if any(file.path == TOKENIZER for file in _small_files(seen)):
            return seen
        seen = seen.base_model
    return None


def _small_files(model: Model) -> list[ModelFile]:
    return list(
        ModelFile.select().where(
            (ModelFile.model == model)
            & ModelFile.path.in_(SMALL_FILES)
            & (ModelFile.size <= LARGEST)
        )
    )


def _fill(context: Context, folder: Path, files: list[ModelFile]) -> None:
    """Copy beside and rename, so that nobody reads half a folder."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix="new-"))
    try:
        for file in files:
            with (beside / str(file.path)).open("wb") as sink:
                sink.writelines(context.storage.get(file.key))
        try:
            os.rename(beside, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
