"""An evaluator: how many tokens a model needs for a word of a dataset.

A model that needs many is a poor base for that language or trade: its rows become long, and long
rows are slow. The measure is known as the fertility of a tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Any

from pydantic import Field

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin import hookimpl
from parsyn.plugin.evaluator import Evaluator
from parsyn.plugin.params import PluginParams
from parsyn.plugin.task import LocalDataset, LocalModel, TaskCancelled, TaskContext, TaskOutcome
from parsyn.wire.states import SchemaKind, TaskPhase


class TokensPerWordParams(PluginParams):
    """The web UI makes its form from these fields; the base class refuses unknown keys."""

    max_rows: int = Field(
        1000,
        ge=1,
        le=1_000_000,
        title="Rows",
        description="At most so many rows, from the start of the dataset.",
        json_schema_extra={"group": "Data", "unit": "rows"},
    )


class TokensPerWord(Evaluator[TokensPerWordParams]):
    name = "tokens_per_word"
    title = "Tokens per word"
    Params = TokensPerWordParams
    accepts = frozenset({SchemaKind.MESSAGES, SchemaKind.SHAREGPT, SchemaKind.ALPACA})

    def evaluate(
        self,
        params: TokensPerWordParams,
        model: LocalModel,
        dataset: LocalDataset,
        context: TaskContext,
    ) -> TaskOutcome:
        # Imported here: the hub loads this module only for the name, the title and the Params.
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(model.tokenizer_path / "tokenizer.json"))
        context.phase(TaskPhase.EVALUATING)
        rates: list[float] = []
        for text in texts(dataset):
            if context.cancelled():
                raise TaskCancelled
            tokens = tokenizer.encode(text, add_special_tokens=False).ids
            rates.append(len(tokens) / len(text.split()))
            context.progress(len(rates), params.max_rows)
            if len(rates) == params.max_rows:
                break
        if not rates:
            raise ParsynError(ErrorCode.BAD_DATA, f"{dataset.name or 'The dataset'} has no words.")
        context.log(f"{len(rates)} rows measured")
        stderr = stdev(rates) / len(rates) ** 0.5 if len(rates) > 1 else None
        measured = {"value": fmean(rates), "stderr": stderr, "better": "lower"}
        return TaskOutcome(facts={"metrics": {"tokens_per_word": measured}})


def texts(dataset: LocalDataset) -> Iterator[str]:
    """What is said in each usable row; broken rows are left out, as in training."""
    from parsyn.plugin.tokens import read_examples
    from parsyn.rows.messages import Example

    for example in read_examples(dataset):
        if isinstance(example, Example):
            text = "\n".join(message["content"] for message in example.messages)
            if text.split():
                yield text


@hookimpl
def register_evaluators() -> Sequence[type[Evaluator[Any]]]:
    return [TokensPerWord]
