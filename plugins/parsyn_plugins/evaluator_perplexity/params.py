"""What an evaluation by perplexity may be told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parsyn.plugin.params import PluginParams


class PerplexityParams(PluginParams):
    max_rows: int | None = Field(
        default=None,
        ge=1,
        title="Most rows",
        description="Score only this many rows, chosen by the seed. Empty scores all.",
        json_schema_extra={"group": "Data", "order": 1, "unit": "rows"},
    )
    train_on: Literal["completions", "all", "last_turn"] = Field(
        default="completions",
        title="Score",
        description="completions: the assistant's answers; last_turn: only the last one; all: "
        "every token.",
        json_schema_extra={"group": "Data", "order": 2},
    )
    max_seq_length: int | None = Field(
        default=None,
        ge=2,
        title="Longest sequence",
        description="Longer rows are cut. Empty is 2048, or the model's context where shorter.",
        json_schema_extra={"group": "Data", "order": 3, "unit": "tokens", "advanced": True},
    )
    seed: int = Field(
        default=42,
        ge=0,
        title="Seed",
        description="Chooses the rows when there is a limit.",
        json_schema_extra={"group": "Data", "order": 4, "advanced": True},
    )
