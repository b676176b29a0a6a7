"""Presets: those that a trainer brings, and a project's own."""

from __future__ import annotations

from typing import Any

from parsyn.errors import ErrorCode, ParsynError, invalid, not_found
from parsyn.plugin.params import aliases_of
from parsyn.plugin.trainer import Trainer, TrainerPreset
from parsyn.services import ingredients
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for, require_role
from parsyn.store.jobs import Preset
from parsyn.store.projects import visible
from parsyn.wire.api.presets import PresetIn, PresetPatch
from parsyn.wire.states import ProjectRole

MOST_OF_A_PROJECT = 200


def page(
    context: Context, who: Principal, trainer: str, project_id: int | None, limit: int, offset: int
) -> dict[str, Any]:
    """The trainers' own first, then the visible ones by name; empty `trainer`: of every trainer."""
    trainers = [one for name, one in context.plugins.trainers.items() if trainer in ("", name)]
    found = [_bundled_out(one, preset) for one in trainers for preset in one.presets]
    rows = Preset.select().where(visible(Preset, who.user_id))
    if trainer:
        rows = rows.where(Preset.trainer == trainer)
    if project_id is not None:
        rows = rows.where(Preset.project == project_id)
    found += [as_out(row) for row in rows.order_by(Preset.name, Preset.id)]
    return {"items": found[offset : offset + limit], "total": len(found)}


def as_out(row: Preset) -> dict[str, Any]:
    """As `PresetOut` wants it."""
    return {
        "id": row.id,
        "name": row.name,
        "title": row.name,
        "description": row.description,
        "trainer": row.trainer,
        "config": row.config,
        "builtin": False,
        "project_id": row.project_id,
    }


def _bundled_out(trainer: Trainer[Any], preset: TrainerPreset) -> dict[str, Any]:
    return {
        "id": None,
        "name": preset.name,
        "title": preset.title,
        "description": preset.description,
        "trainer": trainer.name,
        "config": dict(preset.config),
        "builtin": True,
        "project_id": None,
    }


def create(context: Context, who: Principal, body: PresetIn) -> dict[str, Any]:
    """Raises 422 at the field, also for a name that is taken in the project."""
    project_id = project_for(who, body.project_id)
    trainer = ingredients.plugin(context.plugins.trainers, body.trainer, "trainer")
    _require_free(trainer, project_id, body.name)
    if Preset.select().where(Preset.project == project_id).count() >= MOST_OF_A_PROJECT:
        raise ParsynError(
            ErrorCode.QUOTA_EXCEEDED,
            f"A project has at most {MOST_OF_A_PROJECT} presets; delete one that nobody uses.",
        )
    row = Preset.create(
        user=who.user_id,
        project=project_id,
        name=body.name,
        description=body.description or None,
        trainer=trainer.name,
        config=_checked(trainer, body.config),
    )
    return as_out(row)


def change(context: Context, who: Principal, preset_id: int, body: PresetPatch) -> dict[str, Any]:
    """Change what the body names. Raises 404, 403, 422."""
    row = _find(who, preset_id)
    trainer = ingredients.plugin(context.plugins.trainers, row.trainer, "trainer")
    changes: dict[str, Any] = {}
    if body.name is not None and body.name != row.name:
        _require_free(trainer, row.project_id, body.name)
        changes["name"] = body.name
    if "description" in body.model_fields_set:
        changes["description"] = body.description or None
    if body.config is not None:
        changes["config"] = _checked(trainer, body.config)
    if changes:
        Preset.update(**changes).where(Preset.id == row.id).execute()
    return as_out(Preset.get_by_id(row.id))


def delete(who: Principal, preset_id: int) -> None:
    """Jobs that were made from it keep their settings. Raises 404, 403."""
    Preset.delete().where(Preset.id == _find(who, preset_id).id).execute()


def _find(who: Principal, preset_id: int) -> Preset:
    row = Preset.get_or_none((Preset.id == preset_id) & visible(Preset, who.user_id))
    if row is None:
        raise not_found("preset")
    require_role(who, row.project_id, ProjectRole.EDITOR)
    return row


def _require_free(trainer: Trainer[Any], project_id: int, name: str) -> None:
    if any(name in (preset.name, preset.title) for preset in trainer.presets):
        raise invalid(["name"], f"`{name}` comes with the trainer; choose another name.")
    if Preset.get_or_none((Preset.project == project_id) & (Preset.name == name)) is not None:
        raise invalid(["name"], f"There is a preset `{name}` already; choose another name.")


def _checked(trainer: Trainer[Any], config: dict[str, Any]) -> dict[str, Any]:
    """The config under our own names, without what is not said."""
    given: dict[str, Any] = trainer.parse(config).model_dump(mode="json", exclude_unset=True)
    return given


# --- use -------------------------------------------------------------------------------------


def applied(
    who: Principal,
    trainer: Trainer[Any],
    name: str | None,
    config: dict[str, Any],
    project_id: int,
) -> dict[str, Any]:
    """`config` on top of the preset's. Raises 422 at `preset` where there is none of that name."""
    if name is None:
        return config
    base = _config_of(who, trainer, name, project_id)
    aliases = aliases_of(trainer.Params)
    said = {aliases.get(key, key) for key in config}
    return {**{key: value for key, value in base.items() if key not in said}, **config}


def _config_of(who: Principal, trainer: Trainer[Any], name: str, project_id: int) -> dict[str, Any]:
    for preset in trainer.presets:
        if preset.name == name:
            return dict(preset.config)
    row = Preset.get_or_none(
        (Preset.name == name)
        & (Preset.trainer == trainer.name)
        & (Preset.project == project_id)
        & visible(Preset, who.user_id)
    )
    if row is None:
        known = ", ".join(preset.name for preset in trainer.presets)
        own = f" Those of {trainer.name}: {known}." if known else ""
        raise invalid(["preset"], f"There is no preset `{name}` in this project.{own}")
    config: dict[str, Any] = row.config
    return config
