"""What a new job is made of: the models, datasets and plugins that its request names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from parsyn.errors import ErrorCode, FieldError, ParsynError, invalid
from parsyn.plugin.trainer import DataFacts, ModelFacts
from parsyn.services import model_configs
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.datasets import Dataset
from parsyn.store.models import Model
from parsyn.store.projects import visible
from parsyn.store.workers import Worker
from parsyn.wire.states import DatasetStatus, ModelState, SchemaKind, StatsStatus

P = TypeVar("P")


def model(who: Principal, model_id: int, loc: str = "model_id") -> Model:
    """A model that is ready to work with. Raises 422 at `loc`."""
    row = Model.get_or_none((Model.id == model_id) & visible(Model, who.user_id))
    if row is None:
        raise invalid([loc], "There is no such model.")
    require_ready_model(row, loc)
    return row


def require_ready_model(row: Model, loc: str = "model_id") -> None:
    if row.state != ModelState.READY:
        raise invalid([loc], f"The model {row.name} is {row.state}, not ready.")


def dataset(
    who: Principal, dataset_id: int, accepts: frozenset[SchemaKind], loc: str = "dataset_id"
) -> Dataset:
    """A dataset that is ready and has a shape of `accepts`. Raises 422 at `loc`."""
    row = Dataset.get_or_none((Dataset.id == dataset_id) & visible(Dataset, who.user_id))
    if row is None:
        raise invalid([loc], "There is no such dataset.")
    require_ready_dataset(row, accepts, loc)
    return row


def require_ready_dataset(
    row: Dataset, accepts: frozenset[SchemaKind], loc: str = "dataset_id"
) -> None:
    """Raise 422 with the reason why its rows cannot be used."""
    if row.status == DatasetStatus.VALIDATING:
        raise invalid([loc], f"{row.name} is still being checked; try again in a moment.")
    if row.status == DatasetStatus.INVALID:
        why = row.summary or "Look at its report."
        raise invalid([loc], f"{row.name} cannot be used: {why}")
    if row.needs_mapping or row.schema_kind == SchemaKind.UNKNOWN:
        raise invalid([loc], f"The columns of {row.name} are not recognised; map them first.")
    if not row.row_count:
        raise invalid([loc], f"{row.name} has no usable rows.")
    if row.schema_kind not in accepts:
        fits = ", ".join(sorted(accepts))
        raise invalid([loc], f"{row.name} has the shape {row.schema_kind}; this takes {fits}.")


def plugin(known: dict[str, P], name: str, loc: str) -> P:
    """The plugin of that name. Raises 422 at `loc`, naming those that are installed."""
    if name not in known:
        installed = ", ".join(sorted(known)) or "none"
        raise invalid([loc], f"There is no {loc} `{name}`. Installed: {installed}.")
    return known[name]


def facts_of(context: Context, row: Model) -> ModelFacts:
    """What a trainer is told of a model before a job is queued."""
    return ModelFacts(
        architecture=row.architecture,
        context_length=row.context_length,
        parameters=row.parameters,
        is_adapter=row.base_model_id is not None and "adapter" in row.formats,
        config=model_configs.read(context, row, model_configs.CONFIG),
    )


def data_facts(row: Dataset, has_validation: bool = False) -> DataFacts:
    """What a trainer is told of a dataset before a job is queued."""
    measured: dict[str, Any] = row.stats or {}
    tokens = measured.get("tokens") if row.stats_status == StatsStatus.READY else None
    return DataFacts(
        rows=row.row_count or 0,
        tokens=tokens["total"] if tokens else None,
        longest=tokens["max"] if tokens else None,
        has_validation=has_validation,
    )


def require_exportable(context: Context, formats: Iterable[str], row: Model) -> None:
    """Raise 422 at `export` where a format that shall follow a training cannot be made."""
    errors = []
    for place, name in enumerate(formats):
        exporter = context.plugins.exporters.get(name)
        if exporter is None:
            known = ", ".join(sorted(context.plugins.exporters)) or "none"
            reason = f"There is no exporter `{name}`. Installed: {known}."
        else:
            reason = exporter.refuses(row.architecture, exporter.parse({})) or ""
        if reason:
            errors.append(FieldError(("export", place), reason))
    if errors:
        raise ParsynError(ErrorCode.VALIDATION_FAILED, errors[0].msg, errors=errors)


def require_workers(who: Principal, selection: dict[str, Any]) -> None:
    """Raise 422 where a job names workers that its user cannot see."""
    for key in ("worker_ids", "parsyn_worker_ids"):
        wanted = set(selection[key])
        seen = visible(Worker, who.user_id) | (Worker.kind == "managed")
        found = {
            row.id
            for row in Worker.select(Worker.id).where(
                Worker.id.in_(sorted(wanted)) & Worker.deleted_at.is_null() & seen
            )
        }
        for place, worker_id in enumerate(selection[key]):
            if worker_id not in found:
                raise invalid(["worker_selection", key, place], "There is no such worker.")
    named = {
        "specific_user_workers": ["worker_ids"],
        "specific_parsyn_workers": ["parsyn_worker_ids"],
        "mixed": ["worker_ids", "parsyn_worker_ids"],
    }.get(selection["mode"], [])
    if named and not any(selection[key] for key in named):
        raise invalid(["worker_selection", named[0]], "Name at least one worker, or use auto.")
