"""Trainer plugins: fine-tune a model on a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic

from parsyn.plugin.params import P, parse_params
from parsyn.plugin.task import LocalDataset, LocalModel, TaskContext, TaskOutcome
from parsyn.wire.states import SchemaKind


@dataclass(frozen=True)
class TrainInputs:
    """Everything local that a run reads. `resume` is a verified checkpoint folder."""

    model: LocalModel
    dataset: LocalDataset
    validation: LocalDataset | None = None
    resume: Path | None = None


@dataclass(frozen=True)
class ModelFacts:
    """What the hub knows of a model before a job is queued; None is unknown."""

    architecture: str | None
    context_length: int | None
    parameters: int | None
    is_adapter: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    """Its config.json (an adapter's base's), empty where it is not known."""


@dataclass(frozen=True)
class DataFacts:
    """What the hub knows of a dataset before a job is queued; None is unknown.

    `tokens` of all rows and `longest`, of one row, are as the dataset's statistics have them.
    """

    rows: int
    tokens: int | None = None
    longest: int | None = None
    has_validation: bool = False


@dataclass(frozen=True)
class RunEstimate:
    """What a run will come to, before a weight is loaded; None is unknown.

    `tokens` are those of all epochs; `memory_bytes` is the least that a GPU must have free.
    """

    training_rows: int | None = None
    validation_rows: int | None = None
    steps: int | None = None
    tokens: int | None = None
    effective_batch: int | None = None
    max_length: int | None = None
    trained_parameters: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class TrainerPreset:
    """Parameters under a name, to start from. `config` says only what differs from the defaults.

    `title` and `description` are shown as they are; the description is one honest sentence or two.
    """

    name: str
    title: str
    description: str
    config: Mapping[str, Any]


class Trainer(ABC, Generic[P]):
    """One way to train. The class is constructed without arguments, on the hub and on agents.

    Nothing at import or in `parse` and `check` may import torch: the hub calls them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    Params: type[P]
    accepts: ClassVar[frozenset[SchemaKind]]
    """The dataset shapes that it can train on."""
    presets: ClassVar[tuple[TrainerPreset, ...]] = ()
    """What the form offers to start from; the first one is chosen unless another is."""

    def parse(self, config: Mapping[str, Any]) -> P:
        """Validated parameters; aliases resolved. Raises ParsynError at the field."""
        return parse_params(self.Params, config)

    def check(self, params: P, model: ModelFacts) -> list[str]:
        """Reasons in words why this run cannot work on that model; empty when it can."""
        return []

    def estimate(self, params: P, model: ModelFacts | None, data: DataFacts) -> RunEstimate | None:
        """What the run comes to, for a person who is still choosing; None where there is nothing
        honest to say. `model` is None while none is chosen."""
        return None

    @abstractmethod
    def train(self, params: P, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
        """Run to the end in this process. The outcome's folder is the model (or PEFT adapter)
        with tokenizer and chat template. Raises TaskFailure, TaskCancelled."""
