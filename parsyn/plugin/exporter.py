"""Exporter plugins: turn a model into another format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic

from parsyn.plugin.params import P, parse_params
from parsyn.plugin.task import LocalModel, TaskContext, TaskOutcome


class Exporter(ABC, Generic[P]):
    """One target format. `parse` and `refuses` run on the hub and import no torch."""

    name: ClassVar[str]
    """Also the `format` of the HTTP contract: gguf, onnx, gptq, awq."""
    title: ClassVar[str]
    Params: type[P]

    def parse(self, params: Mapping[str, Any]) -> P:
        return parse_params(self.Params, params, loc="params")

    @abstractmethod
    def refuses(self, architecture: str | None, params: P) -> str | None:
        """A sentence why this architecture cannot be exported, or None when it can."""

    @abstractmethod
    def export(self, params: P, model: LocalModel, context: TaskContext) -> TaskOutcome:
        """Write the files and load them back. Facts: format, quantization, parity."""
