"""Trainer plugins: fine-tune a model on a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
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


class Trainer(ABC, Generic[P]):
    """One way to train. The class is constructed without arguments, on the hub and on agents.

    Nothing at import or in `parse` and `check` may import torch: the hub calls them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    Params: type[P]
    accepts: ClassVar[frozenset[SchemaKind]]
    """The dataset shapes that it can train on."""

    def parse(self, config: Mapping[str, Any]) -> P:
        """Validated parameters; aliases resolved. Raises ParsynError at the field."""
        return parse_params(self.Params, config)

    def check(self, params: P, model: ModelFacts) -> list[str]:
        """Reasons in words why this run cannot work on that model; empty when it can."""
        return []

    @abstractmethod
    def train(self, params: P, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
        """Run to the end in this process. The outcome's folder is the model (or PEFT adapter)
        with tokenizer and chat template. Raises TaskFailure, TaskCancelled."""
