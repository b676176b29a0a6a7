"""Evaluator plugins: measure a model on a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic

from parsyn.plugin.params import P, parse_params
from parsyn.plugin.task import LocalDataset, LocalModel, TaskContext, TaskOutcome
from parsyn.wire.states import SchemaKind


class Evaluator(ABC, Generic[P]):
    """One measurement. `parse` runs on the hub and imports no torch."""

    name: ClassVar[str]
    title: ClassVar[str]
    Params: type[P]
    accepts: ClassVar[frozenset[SchemaKind]]

    def parse(self, params: Mapping[str, Any]) -> P:
        return parse_params(self.Params, params, loc="params")

    @abstractmethod
    def evaluate(
        self, params: P, model: LocalModel, dataset: LocalDataset, context: TaskContext
    ) -> TaskOutcome:
        """Facts: {"metrics": {name: {"value", "stderr", "better": "lower"|"higher"}}}."""
