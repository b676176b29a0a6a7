"""A dataset as token ids on disk: read by `parsyn.rows`, so that preview and training are the same.

Needs numpy, which every agent has. Memory stays flat: ids and labels are mapped from files.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsyn.plugin.task import LocalDataset, LocalModel, TaskCancelled, TaskContext, TaskFailure
from parsyn.rows.formats import Row
from parsyn.rows.mapping import BadMapping
from parsyn.rows.messages import MASKED, Example
from parsyn.rows.problems import BadRow, Problem, Severity, UnusableFile
from parsyn.rows.requests import Source
from parsyn.rows.sources import example_of, open_source
from parsyn.rows.spans import TrainOn
from parsyn.rows.template import ChatTemplate, TemplateError, load_template
from parsyn.rows.tokens import RowEncoder, TokenizedExample, load_tokenizer
from parsyn.wire.states import FailureReason, TaskPhase

Ids = NDArray[np.int32]
REPORT_EVERY = 2000
SHOWN_PROBLEMS = 5


@dataclass
class TokenRows:
    """Tokenised rows. `lengths[i]` counts tokens, `trained[i]` those that are learnt from (the
    first token of a row never is), `numbers[i]` is the example's place in the dataset, from 0."""

    ids: Ids
    labels: Ids
    offsets: Sequence[int]
    lengths: Sequence[int]
    trained: Sequence[int]
    numbers: Sequence[int]
    truncated: int = 0
    problems: list[str] = field(default_factory=list)
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def row(self, index: int) -> tuple[Ids, Ids]:
        """Ids and labels of one row; `MASKED` where nothing is learnt."""
        start = self.offsets[index]
        end = start + self.lengths[index]
        return self.ids[start:end], self.labels[start:end]


def read_examples(dataset: LocalDataset) -> Iterator[Example | Problem]:
    """Every row as an example, in file order; bad rows as problems. Raises TaskFailure."""
    source = Source(
        path=str(dataset.path),
        filename=dataset.name or dataset.path.name,
        schema_kind=dataset.schema_kind,
        mapping=dict(dataset.mapping) if dataset.mapping else None,
    )
    try:
        opened = open_source(source)
    except UnusableFile as error:
        raise _bad_data(error.problem.message) from error
    except BadMapping as error:
        raise _bad_data(str(error)) from error
    if opened.plan is None:
        raise _bad_data("The dataset's columns are not mapped to a known shape.")
    for item in opened.items:
        if isinstance(item, Row):
            yield example_of(item, opened.plan)
        elif item.severity is not Severity.WARNING:
            yield item


def tokenise_dataset(
    dataset: LocalDataset,
    model: LocalModel,
    context: TaskContext,
    *,
    train_on: TrainOn = "completions",
    max_length: int | None = None,
    name: str = "train",
) -> TokenRows:
    """All rows of `dataset` that teach something, as the model's tokens, in `context.folder`.

    Raises TaskFailure `bad_data` when no row is left, naming what was wrong with them.
    """
    encoder = RowEncoder(*_tokenizer_of(model), train_on, max_length)
    examples = _Examples(dataset)
    with _Writer(context.folder / name) as writer:
        for done, result in enumerate(encoder.encode_all(examples)):
            if done % REPORT_EVERY == 0:
                context.phase(TaskPhase.TOKENIZING, done)
                if context.cancelled():
                    raise TaskCancelled
            writer.add(result, examples.numbers[done])
    rows = writer.rows()
    rows.problems = examples.problems + rows.problems
    rows.left_out += examples.bad
    if not rows:
        raise _nothing_left(rows, writer, train_on, max_length)
    return rows


def load_chat(model: LocalModel) -> tuple[Any, ChatTemplate]:
    """The model's tokenizer (of the `tokenizers` library) and chat template."""
    return _tokenizer_of(model)


def _tokenizer_of(model: LocalModel) -> tuple[Any, ChatTemplate]:
    try:
        return load_tokenizer(model.tokenizer_path), load_template(model.tokenizer_path)
    except BadRow as error:
        raise TaskFailure(FailureReason.MODEL_UNAVAILABLE, error.message) from error
    except TemplateError as error:
        raise TaskFailure(FailureReason.MODEL_UNAVAILABLE, str(error)) from error


class _Examples:
    """The good examples, for the encoder; remembers each one's place and what was wrong."""

    def __init__(self, dataset: LocalDataset) -> None:
        self.dataset = dataset
        self.numbers = array("q")
        self.problems: list[str] = []
        self.bad = 0

    def __iter__(self) -> Iterator[Example]:
        for number, item in enumerate(read_examples(self.dataset)):
            if isinstance(item, Example):
                self.numbers.append(number)
                yield item
            elif item.severity is Severity.FILE:
                raise _bad_data(item.message)
            else:
                self.bad += 1
                if len(self.problems) < SHOWN_PROBLEMS:
                    self.problems.append(f"row {item.row}: {item.message}")


class _Writer:
    """Appends rows to two flat files of 32-bit ids."""

    def __init__(self, path: Path) -> None:
        self.paths = path.with_suffix(".ids"), path.with_suffix(".labels")
        self.files = [path.open("wb") for path in self.paths]
        self.lengths, self.trained, self.numbers = array("q"), array("q"), array("q")
        self.problems: list[str] = []
        self.masked = self.cut = self.left_out = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self.files:
            file.close()

    def add(self, result: TokenizedExample | BadRow, number: int) -> None:
        if isinstance(result, BadRow):
            self.left_out += 1
            if len(self.problems) < SHOWN_PROBLEMS:
                self.problems.append(f"row {number + 1}: {result.message}")
            return
        # What predicts nothing is never learnt: the first token has none before it.
        trained = len(result.labels) - 1 - result.labels[1:].count(MASKED)
        self.cut += result.truncated
        if trained <= 0:
            self.masked += 1
            self.left_out += 1
            return
        for file, values in zip(self.files, (result.input_ids, result.labels), strict=True):
            array("i", values).tofile(file)
        self.lengths.append(len(result.input_ids))
        self.trained.append(trained)
        self.numbers.append(number)

    def rows(self) -> TokenRows:
        """What was written, mapped into memory; after the files are closed."""
        offsets, total = array("q"), 0
        for length in self.lengths:
            offsets.append(total)
            total += length
        ids, labels = (
            np.memmap(path, np.int32, "r") if total else np.zeros(0, np.int32)
            for path in self.paths
        )
        return TokenRows(
            ids,
            labels,
            offsets,
            self.lengths,
            self.trained,
            self.numbers,
            self.cut,
            self.problems,
            self.left_out,
        )


def _nothing_left(
    rows: TokenRows, writer: _Writer, train_on: TrainOn, max_length: int | None
) -> TaskFailure:
    if writer.masked:
        return TaskFailure(
            FailureReason.BAD_DATA,
            f"No row teaches anything: with train_on `{train_on}` and max_seq_length "
            f"{max_length} every token is masked in {writer.masked} rows "
            f"({writer.cut} were cut).",
            advice="Raise max_seq_length so that the answers fit, or set train_on to `all`.",
        )
    line = rows.problems[0] if rows.problems else None
    return TaskFailure(
        FailureReason.BAD_DATA,
        "The dataset has no row that can be trained on.",
        line=line,
        advice="Look at the dataset's report and correct its rows.",
    )


def _bad_data(message: str) -> TaskFailure:
    return TaskFailure(FailureReason.BAD_DATA, message, advice="Correct the dataset's file.")
