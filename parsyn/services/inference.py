"""Which model is meant, whose workers may answer with it, and how to sample."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from parsyn.errors import ErrorCode, FieldError, ParsynError, invalid, not_found
from parsyn.services import model_configs
from parsyn.services.context import Context
from parsyn.services.models import model_ref
from parsyn.services.principal import Principal, project_for
from parsyn.store.models import Model
from parsyn.store.projects import RANK, role_on, visible
from parsyn.wire.api.chat import SamplingIn
from parsyn.wire.refs import ModelRef
from parsyn.wire.states import ModelState, ProjectRole
from parsyn.wire.worker import Sampling

SLUG_ID = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class Target:
    """A model that is ready to answer, for one asker.

    Workers of `projects` may answer (best first), the asker's own and the house's. `defaults` are
    the sampling values that come with the model.
    """

    model: ModelRef
    user_id: int
    projects: tuple[int, ...]
    defaults: Mapping[str, Any]


def target_of(context: Context, who: Principal, model_id: int, loc: str | None = None) -> Target:
    """Raises 404 (422 at `loc` of a body) for a model that is not theirs to see, 409 for one that
    is not ready."""
    return target_for(context, who, visible_model(who, model_id, loc))


def targets_of(context: Context, who: Principal, model_ids: list[int], loc: str) -> list[Target]:
    """`target_of` for each."""
    return [target_of(context, who, model_id, loc) for model_id in model_ids]


def target_for(context: Context, who: Principal, model: Model) -> Target:
    """As `target_of`, for a row that was found visible already."""
    require_ready(model)
    projects = prompting_projects(who, model)
    return Target(model_ref(model), who.user_id, projects, _model_defaults(context, model))


def visible_model(who: Principal, model_id: int, loc: str | None = None) -> Model:
    """The model, or 404 (422 at `loc`) where it is not theirs to see."""
    row = Model.get_or_none((Model.id == model_id) & visible(Model, who.user_id))
    if row is None:
        raise invalid([loc], "There is no such model.") if loc else not_found("model")
    return row


def require_ready(model: Model) -> None:
    """Raise 409 with the reason where a model cannot answer (yet)."""
    if model.state == ModelState.READY:
        return
    if model.state == ModelState.FAILED:
        why = model.failure["message"] if model.failure else "it could not be made."
        detail = f"The model {model.name} cannot answer: {why}"
    elif model.state == ModelState.TRAINING:
        detail = f"The model {model.name} is still being trained; it can answer once that is done."
    else:
        detail = f"The model {model.name} is still being fetched; try again when it is ready."
    raise ParsynError(ErrorCode.INVALID_STATE, detail)


def prompting_projects(who: Principal, model: Model) -> tuple[int, ...]:
    """The projects whose workers this user may let answer with a model.

    Its own project where the user may start work there, then the user's personal one.
    """
    role = role_on(model.project_id, who.user_id)
    may_start = role is not None and RANK[role] >= RANK[ProjectRole.EDITOR]
    personal = project_for(who, None)
    return (model.project_id, personal) if may_start else (personal,)


def find_by_name(who: Principal, name: str) -> Model:
    """The visible model with this slug, `ft:<base>:<name>` or id. Raises 404.

    Where a slug is used in several projects, the one in the user's own project counts.
    """
    rows = list(_ready_first(who, Model.slug == name)) or _fine_tunes(who, name)
    if not rows and SLUG_ID.fullmatch(name):
        rows = list(_ready_first(who, Model.id == int(name)))
    if not rows:
        detail = f"There is no model {name[:200]!r}. GET /v1/models lists those that you may use."
        raise ParsynError(ErrorCode.NOT_FOUND, detail, errors=[FieldError(("model",), detail)])
    return rows[0]


def named_models(who: Principal) -> list[tuple[str, Model]]:
    """(the name that finds it, model) of every visible model that is ready, newest first."""
    rows = list(_ready_first(who, Model.state == ModelState.READY))
    meant: dict[str, int] = {}
    for row in rows:
        meant.setdefault(row.slug, row.id)
    rows.sort(key=lambda row: row.id, reverse=True)
    return [(row.slug if meant[row.slug] == row.id else str(row.id), row) for row in rows]


def _ready_first(who: Principal, condition: Any) -> Any:
    rows = Model.select().where(condition & visible(Model, who.user_id))
    own = Model.user == who.user_id
    return rows.order_by((Model.state == ModelState.READY).desc(), own.desc(), Model.id.desc())


def _fine_tunes(who: Principal, name: str) -> list[Model]:
    parts = name.split(":", 2)
    if len(parts) != 3 or parts[0] != "ft":
        return []
    base = Model.alias()
    named = (Model.slug == parts[2]) | (Model.name == parts[2])
    bases = base.select(base.id).where(base.slug == parts[1])
    return list(_ready_first(who, named & Model.base_model.in_(bases)))


# --- sampling ---------------------------------------------------------------------------------


def merged(*layers: Mapping[str, Any]) -> Sampling:
    """Sampling of which the later layers win; a value of None is absent."""
    values: dict[str, Any] = {}
    for layer in layers:
        values.update({name: value for name, value in layer.items() if value is not None})
    return Sampling.model_validate(values)


def _model_defaults(context: Context, model: Model) -> dict[str, Any]:
    """temperature, top_p and top_k of the model's own generation_config.json, if it has one."""
    given = model_configs.read(context, model, model_configs.GENERATION)
    named = {name: given.get(name) for name in ("temperature", "top_p", "top_k")}
    if given.get("do_sample") is False:
        named = {"temperature": 0.0}
    try:
        return SamplingIn.model_validate(named).model_dump(exclude_none=True)
    except ValidationError:
        return {}
