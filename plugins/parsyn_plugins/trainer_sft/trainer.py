"""The trainer as the hub and the agent see it. Torch is loaded by `train` alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.params import parse_params
from parsyn.plugin.task import TaskContext, TaskOutcome
from parsyn.plugin.trainer import DataFacts, ModelFacts, RunEstimate, Trainer, TrainInputs
from parsyn.wire.states import SchemaKind
from parsyn_plugins.trainer_sft.aliases import resolve
from parsyn_plugins.trainer_sft.estimate import estimate
from parsyn_plugins.trainer_sft.params import SftParams
from parsyn_plugins.trainer_sft.presets import PRESETS

ACCEPTS = frozenset(
    {
        SchemaKind.MESSAGES,
        SchemaKind.SHAREGPT,
        SchemaKind.ALPACA,
        SchemaKind.PROMPT_COMPLETION,
        SchemaKind.TEXT,
        SchemaKind.TOKENIZED,
    }
)


class SftTrainer(Trainer[SftParams]):
    name = "sft"
    title = "Supervised fine-tuning"
    Params = SftParams
    accepts = ACCEPTS
    presets = PRESETS

    def parse(self, config: Mapping[str, Any]) -> SftParams:
        values, errors = resolve(config)
        try:
            params = parse_params(SftParams, values)
        except ParsynError as error:
            errors += error.errors
        if errors:
            summary = "; ".join(f"{'.'.join(map(str, e.loc))}: {e.msg}" for e in errors[:3])
            raise ParsynError(ErrorCode.VALIDATION_FAILED, summary, errors=errors)
        return params

    def check(self, params: SftParams, model: ModelFacts) -> list[str]:
        reasons = []
        context = model.context_length
        if context and params.max_seq_length != "auto" and params.max_seq_length > context:
            reasons.append(
                f"max_seq_length is {params.max_seq_length}, and the model's context is "
                f"{context} tokens: give {context} or less."
            )
        return reasons

    def estimate(self, params: SftParams, model: ModelFacts | None, data: DataFacts) -> RunEstimate:
        return estimate(params, model, data)

    def train(self, params: SftParams, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
        from parsyn_plugins.trainer_sft.run import train

        return train(params, inputs, context)
