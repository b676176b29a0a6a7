"""What a training job is made of, gathered and checked: all that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from parsyn.errors import ErrorCode, FieldError, ParsynError, invalid
from parsyn.plugin.trainer import Trainer
from parsyn.services import ingredients, presets
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for
from parsyn.store.datasets import Dataset
from parsyn.store.models import Model
from parsyn.wire.api.training import TrainingAsked


@dataclass
class Parts:
    """`config` is the preset's with what was asked for on top; what is missing is None or named
    in `errors`."""

    project_id: int
    trainer: Trainer[Any] | None = None
    dataset: Dataset | None = None
    validation: Dataset | None = None
    model: Model | None = None
    config: dict[str, Any] = field(default_factory=dict)
    params: Any = None
    errors: list[FieldError] = field(default_factory=list)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """What is refused within is one of `errors`, and the rest goes on."""
        try:
            yield
        except ParsynError as error:
            if error.code is not ErrorCode.VALIDATION_FAILED:
                raise
            self.errors += error.errors or [FieldError((), error.detail)]

    def refuse(self) -> None:
        """Raise 422 where anything is wrong."""
        if self.errors:
            said = list(dict.fromkeys(error.msg for error in self.errors))
            detail = " ".join(said[:3])
            raise ParsynError(ErrorCode.VALIDATION_FAILED, detail, errors=self.errors)


def gather(
    context: Context, who: Principal, body: TrainingAsked, dataset_id: int | None,
    model_id: int | None,
) -> Parts:  # fmt: skip
    """Look up and check everything that the request names. Raises 404, 403 for the project."""
    parts = Parts(project_for(who, body.project_id))
    with parts.collecting():
        parts.trainer = ingredients.plugin(context.plugins.trainers, body.trainer, "trainer")
    if parts.trainer is not None:
        _data(parts, parts.trainer, who, body, dataset_id)
        _settings(parts, parts.trainer, who, body)
    with parts.collecting():
        parts.model = ingredients.model(who, model_id) if model_id is not None else None
    if parts.trainer is not None and parts.model is not None and parts.params is not None:
        reasons = parts.trainer.check(parts.params, ingredients.facts_of(context, parts.model))
        parts.errors += [_at_setting(reason, parts.params) for reason in reasons]
    _surroundings(parts, context, who, body)
    return parts


def _at_setting(reason: str, params: BaseModel) -> FieldError:
    """A reason that begins with a setting's name is shown at that setting."""
    name = reason.split(maxsplit=1)[0] if reason else ""
    known = name in type(params).model_fields
    return FieldError(("config", name) if known else ("config",), reason)


def _data(
    parts: Parts, trainer: Trainer[Any], who: Principal, body: TrainingAsked,
    dataset_id: int | None,
) -> None:  # fmt: skip
    if dataset_id is not None:
        with parts.collecting():
            parts.dataset = ingredients.dataset(who, dataset_id, trainer.accepts)
    if body.validation_dataset_id is not None:
        with parts.collecting():
            parts.validation = ingredients.dataset(
                who, body.validation_dataset_id, trainer.accepts, "validation_dataset_id"
            )


def _settings(parts: Parts, trainer: Trainer[Any], who: Principal, body: TrainingAsked) -> None:
    parts.config = body.config
    with parts.collecting():
        parts.config = presets.applied(who, trainer, body.preset, body.config, parts.project_id)
    with parts.collecting():
        parts.params = trainer.parse(parts.config)


def _surroundings(parts: Parts, context: Context, who: Principal, body: TrainingAsked) -> None:
    with parts.collecting():
        if body.distributed.enabled:
            raise invalid(["distributed", "enabled"], "This hub trains on one worker at a time.")
    if parts.model is not None:
        with parts.collecting():
            ingredients.require_exportable(context, body.export, parts.model)
    with parts.collecting():
        ingredients.require_workers(who, body.worker_selection.model_dump())
