"""Perplexity: how well a model predicts the answers of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsyn.plugin import hookimpl
from parsyn.plugin.evaluator import Evaluator


@hookimpl
def register_evaluators() -> Sequence[type[Evaluator[Any]]]:
    from parsyn_plugins.evaluator_perplexity.evaluator import PerplexityEvaluator

    return [PerplexityEvaluator]
