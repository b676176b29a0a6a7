"""What a task takes: how much memory at the least, how many tokens, what it compares with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from parsyn.plugin.trainer import RunEstimate
from parsyn.services import ingredients, model_configs
from parsyn.services.context import Context
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.wire.tasks import EvaluateSpec, TaskSpec, TrainSpec

log = logging.getLogger(__name__)
HALF_BYTES = 2
"""Of a parameter in 16 bit, as models are loaded to be evaluated."""


@dataclass(frozen=True)
class Needs:
    """None is unknown. `memory_bytes` is a lower bound: what has less cannot run it.

    `method` names what is done (`sft lora`), `length` the longest row in tokens, `tokens` those of
    the whole run, of which a checkpoint holds the share `done`. `quantized`: the base is loaded in
    4 or 8 bit. `remote_code`: the model brings code that has to be trusted.
    """

    method: str | None = None
    architecture: str | None = None
    parameters: int | None = None
    length: int | None = None
    tokens: int | None = None
    done: float = 0.0
    memory_bytes: int | None = None
    quantized: bool = False
    remote_code: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Without what is unknown or false."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Needs:
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in known})


def of(context: Context, job: Job, spec: TaskSpec) -> Needs:
    """What is known before the task runs; exports and downloads need nothing in particular."""
    model = Model.by_id(job.model_id)
    if model is None or not isinstance(spec, TrainSpec | EvaluateSpec):
        return Needs()
    dataset = Dataset.by_id(job.dataset_id)
    if isinstance(spec, EvaluateSpec):
        return _of_evaluation(context, spec, model, dataset)
    return _of_training(context, job, spec, model, dataset)


def _of_training(
    context: Context, job: Job, spec: TrainSpec, model: Model, dataset: Dataset | None
) -> Needs:
    estimate = _estimate(context, job, spec, model, dataset)
    params = spec.params
    method = params.get("method")
    quantized = method == "qlora" or bool(params.get("quantization"))
    longest = ingredients.data_facts(dataset).longest if dataset else None
    lengths = [value for value in (estimate.max_length, longest) if value]
    return Needs(
        method=" ".join(filter(None, (spec.trainer, method))),
        architecture=model.architecture,
        parameters=_parameters(model),
        length=min(lengths, default=None),
        tokens=estimate.tokens,
        memory_bytes=estimate.memory_bytes,
        quantized=quantized,
        remote_code=_brings_code(context, model),
    )


def _estimate(
    context: Context, job: Job, spec: TrainSpec, model: Model, dataset: Dataset | None
) -> RunEstimate:
    trainer = context.plugins.trainers.get(spec.trainer)
    if trainer is None or dataset is None:
        return RunEstimate()
    data = ingredients.data_facts(dataset, job.validation_dataset_id is not None)
    try:
        params = trainer.parse(spec.params)
        found = trainer.estimate(params, ingredients.facts_of(context, model), data)
    except Exception:
        # A plugin's guess must not keep a job from its queue.
        log.exception("trainer %s could not estimate job %d", spec.trainer, job.id)
        return RunEstimate()
    return found or RunEstimate()


def _of_evaluation(
    context: Context, spec: EvaluateSpec, model: Model, dataset: Dataset | None
) -> Needs:
    facts = ingredients.data_facts(dataset) if dataset else None
    parameters = _parameters(model)
    tokens = facts.tokens if facts else None
    most = spec.params.get("max_rows")
    if facts and tokens and facts.rows and isinstance(most, int):
        tokens = round(tokens * min(1.0, most / facts.rows))
    return Needs(
        method=spec.evaluator,
        architecture=model.architecture,
        parameters=parameters,
        length=facts.longest if facts else None,
        tokens=tokens,
        memory_bytes=parameters * HALF_BYTES if parameters else None,
        remote_code=_brings_code(context, model),
    )


def _parameters(model: Model) -> int | None:
    """Of the whole model; an adapter's own are few beside its base's."""
    base = model.base_model
    if base is not None and "adapter" in model.formats:
        return _parameters(base)
    parameters: int | None = model.parameters
    return parameters


def _brings_code(context: Context, model: Model) -> bool:
    return bool(model_configs.read(context, model, model_configs.CONFIG).get("auto_map"))
