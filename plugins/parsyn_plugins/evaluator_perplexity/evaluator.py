"""The evaluator as the hub and the agent see it. Torch is loaded by `evaluate` alone."""

from __future__ import annotations

from parsyn.plugin.evaluator import Evaluator
from parsyn.plugin.task import LocalDataset, LocalModel, TaskContext, TaskOutcome
from parsyn.wire.states import SchemaKind
from parsyn_plugins.evaluator_perplexity.params import PerplexityParams


class PerplexityEvaluator(Evaluator[PerplexityParams]):
    name = "perplexity"
    title = "Perplexity"
    Params = PerplexityParams
    accepts = frozenset(
        {
            SchemaKind.MESSAGES,
            SchemaKind.SHAREGPT,
            SchemaKind.ALPACA,
            SchemaKind.PROMPT_COMPLETION,
            SchemaKind.TEXT,
            SchemaKind.TOKENIZED,
        }
    )

    def evaluate(
        self,
        params: PerplexityParams,
        model: LocalModel,
        dataset: LocalDataset,
        context: TaskContext,
    ) -> TaskOutcome:
        """Perplexity is exp of the mean loss over all scored tokens; rows are the sample."""
        from parsyn_plugins.evaluator_perplexity.measure import measure

        return measure(params, model, dataset, context)
