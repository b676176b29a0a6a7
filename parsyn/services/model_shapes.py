"""Models as the HTTP contract, the events and the agents see them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from parsyn.services.context import Context
from parsyn.store.models import Model, ModelFile
from parsyn.wire.api.models import ModelOut
from parsyn.wire.events import EventType
from parsyn.wire.refs import FileRef, ModelRef
from parsyn.wire.states import ModelSource


def as_out(row: Model) -> dict[str, Any]:
    """As `ModelOut` wants it."""
    return row.as_dict()


def publish(context: Context, model_id: int) -> None:
    """Tell the dashboards how the model stands."""
    row = Model.get_by_id(model_id)
    data = ModelOut.model_validate(as_out(row)).model_dump(mode="json")
    context.publish(EventType.MODEL_STATE, f"project:{row.project_id}", data)


def model_ref(row: Model) -> ModelRef:
    """The model as an agent gets it, with its base where it is an adapter."""
    from_hub = row.source == ModelSource.HUB
    is_adapter = "adapter" in row.formats and row.base_model is not None
    return ModelRef(
        id=row.id,
        name=row.name,
        slug=row.slug,
        architecture=row.architecture,
        context_length=row.context_length,
        files=() if from_hub else tuple(_file_refs(row)),
        hub_id=row.hub_id if from_hub else None,
        revision=row.revision if from_hub else None,
        base=model_ref(row.base_model) if is_adapter else None,
    )


def _file_refs(row: Model) -> list[FileRef]:
    files = ModelFile.select().where(ModelFile.model == row).order_by(ModelFile.path)
    return [
        FileRef(path=file.path, key=file.key, size=file.size, sha256=file.sha256) for file in files
    ]


def free_slug(project_id: int, name: str) -> str:
    """A slug for a new model: of its name, with a number where that is taken in the project."""
    wanted = slug_of(name)
    taken = {
        row.slug
        for row in Model.select(Model.slug).where(
            (Model.project == project_id) & Model.slug.startswith(wanted)
        )
    }
    number = 2
    slug = wanted
    while slug in taken:
        slug = f"{wanted}-{number}"
        number += 1
    return slug


def slug_of(name: str) -> str:
    """Lower-case ASCII letters, digits, `.`, `_` and `-`; never empty and never a bare number."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9._]+", "-", plain).strip("-._")[:80] or "model"
    return f"model-{slug}" if slug.isdigit() else slug
