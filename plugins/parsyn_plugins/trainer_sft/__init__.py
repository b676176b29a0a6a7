"""Supervised fine-tuning: LoRA, QLoRA or full, on TRL and PEFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsyn.plugin import hookimpl
from parsyn.plugin.trainer import Trainer


@hookimpl
def register_trainers() -> Sequence[type[Trainer[Any]]]:
    from parsyn_plugins.trainer_sft.trainer import SftTrainer

    return [SftTrainer]
