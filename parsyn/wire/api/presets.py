"""Presets: a trainer's parameters under a name, bundled with it or a person's own."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from parsyn.wire.api.base import In, Name, Out

Description = Annotated[str, Field(max_length=500)]


class PresetIn(In):
    """`config` says only what differs from the trainer's defaults."""

    name: Name
    description: Description | None = None
    trainer: str = "sft"
    config: dict[str, Any] = {}
    project_id: int | None = None


class PresetPatch(In):
    name: Name | None = None
    description: Description | None = None
    config: dict[str, Any] | None = None


class PresetOut(Out):
    """`name` is what a job's `preset` names; `id` is null for those that come with a trainer,
    which cannot be changed."""

    id: int | None
    name: str
    title: str
    description: str | None
    trainer: str
    config: dict[str, Any]
    builtin: bool
    project_id: int | None
