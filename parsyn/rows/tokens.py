"""Examples as token ids, with the tokens from which something is learnt."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parsyn.rows.messages import MASKED, Example
from parsyn.rows.problems import BadRow, ProblemCode
from parsyn.rows.spans import Rendered, TrainOn, render_example
from parsyn.rows.template import ChatTemplate, Span

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = [
    "MASKED",
    "PreviewToken",
    "RowEncoder",
    "TokenizedExample",
    "TrainOn",
    "load_tokenizer",
    "preview_tokens",
    "tokenise",
    "tokenise_all",
]

_BATCH_ROWS = 256
_BATCH_CHARACTERS = 4 << 20


@dataclass(frozen=True, slots=True)
class TokenizedExample:
    """`labels[i]` is the id to learn at place i, or `MASKED`. `truncated`: cut at the end."""

    input_ids: list[int]
    labels: list[int]
    truncated: bool = False

    @property
    def trained(self) -> list[bool]:
        return [label != MASKED for label in self.labels]

    @property
    def trained_count(self) -> int:
        return len(self.labels) - self.labels.count(MASKED)


@dataclass(frozen=True, slots=True)
class PreviewToken:
    """The texts of a row's tokens, joined, are the rendered row."""

    id: int
    text: str
    trained: bool
    special: bool


def load_tokenizer(model_dir: Path) -> Tokenizer:
    """`tokenizer.json` of a model folder, without its own truncation and padding.

    Raises `BadRow` when it is missing or not readable.
    """
    from tokenizers import Tokenizer

    path = model_dir / "tokenizer.json"
    if not path.is_file():
        raise BadRow(
            ProblemCode.TEMPLATE_FAILED,
            "The model has no tokenizer.json. Save it with a fast tokenizer and import it again.",
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise BadRow(
            ProblemCode.TEMPLATE_FAILED, "The tokenizer.json of the model cannot be read."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


_Prepared = TokenizedExample | BadRow | Rendered


class RowEncoder:
    """Turns examples into token ids with one tokenizer, one template and one masking rule."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        train_on: TrainOn = "completions",
        max_length: int | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._train_on = train_on
        self._max_length = max_length
        added = tokenizer.get_added_tokens_decoder()
        self._special = frozenset(id_ for id_, token in added.items() if token.special)
        end = template.special_tokens.get("eos_token")
        self._end = None if end is None else tokenizer.token_to_id(end)

    def encode_all(self, examples: Iterable[Example]) -> Iterator[TokenizedExample | BadRow]:
        """One result for each example, in order, in batches bounded in rows and in characters."""
        batch: list[_Prepared] = []
        size = 0
        for example in examples:
            prepared = self._prepare(example)
            batch.append(prepared)
            size += len(prepared.text) if isinstance(prepared, Rendered) else 0
            if len(batch) == _BATCH_ROWS or size > _BATCH_CHARACTERS:
                yield from self._encode_batch(batch)
                batch, size = [], 0
        yield from self._encode_batch(batch)

    def preview(self, example: Example) -> tuple[str, list[PreviewToken]]:
        """The rendered row, and its tokens up to the length limit. Raises `BadRow`."""
        if example.input_ids is not None:
            tokenized = self._given(example.input_ids, example.labels or example.input_ids)
            pieces = [self._piece(id_) for id_ in tokenized.input_ids]
            return "".join(pieces), self._views(tokenized, pieces)
        rendered = render_example(example, self._template, self._train_on)
        encoding = self._tokenizer.encode(rendered.text, add_special_tokens=rendered.bare)
        tokenized = self._labelled(rendered, encoding)
        return rendered.text, self._views(tokenized, self._slices(rendered, encoding, tokenized))

    def _encode_batch(self, results: list[_Prepared]) -> Iterator[TokenizedExample | BadRow]:
        for bare in (False, True):
            waiting = [
                (place, result)
                for place, result in enumerate(results)
                if isinstance(result, Rendered) and result.bare is bare
            ]
            texts = [rendered.text for _, rendered in waiting]
            encodings = self._tokenizer.encode_batch(texts, add_special_tokens=bare)
            for (place, rendered), encoding in zip(waiting, encodings, strict=True):
                results[place] = self._labelled(rendered, encoding)
        yield from (result for result in results if not isinstance(result, Rendered))

    def _prepare(self, example: Example) -> _Prepared:
        try:
            if example.input_ids is not None:
                return self._given(example.input_ids, example.labels or example.input_ids)
            return render_example(example, self._template, self._train_on)
        except BadRow as bad:
            return bad

    def _given(self, ids: list[int], labels: list[int]) -> TokenizedExample:
        size = self._tokenizer.get_vocab_size(with_added_tokens=True)
        if max(ids) >= size:
            raise BadRow(
                ProblemCode.BAD_INPUT_IDS,
                f"The id {max(ids)} is beyond the model's {size} tokens. "
                "Tokenise the rows with this model's tokenizer.",
            )
        return self._cut(ids, labels)

    def _labelled(self, rendered: Rendered, encoding: Encoding) -> TokenizedExample:
        ids: list[int] = encoding.ids
        labels = [MASKED] * len(ids)
        offsets = encoding.offsets
        if rendered.bare and offsets and offsets[-1] == (0, 0):
            # An EOS that the tokenizer adds by itself stands at no place in the text.
            offsets[-1] = (len(rendered.text), len(rendered.text))
        starts = [start for start, _ in offsets]
        for span in rendered.spans:
            first, last = self._token_range(rendered.text, offsets, starts, span, ids)
            labels[first:last] = ids[first:last]
        if rendered.bare:
            ids, labels = self._ended(ids, labels)
        return self._cut(ids, labels)

    def _token_range(
        self, text: str, offsets: list[Span], starts: list[int], span: Span, ids: list[int]
    ) -> tuple[int, int]:
        start, end = span
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        # A token may hold the blank before the answer together with its first letters.
        if (
            first > 0
            and offsets[first - 1][1] > start
            and text[starts[first - 1] : start].isspace()
        ):
            first -= 1
        if end - start == len(text):
            return first, last
        # The line break that templates write after the end of a turn is never generated.
        cut = last
        while cut > first and text[offsets[cut - 1][0] : offsets[cut - 1][1]].isspace():
            cut -= 1
        return first, cut if cut > first and ids[cut - 1] in self._special else last

    def _ended(self, ids: list[int], labels: list[int]) -> tuple[list[int], list[int]]:
        if self._end is None:
            return ids, labels
        if ids and ids[-1] == self._end:
            return ids, [*labels[:-1], self._end]
        return [*ids, self._end], [*labels, self._end]

    def _cut(self, ids: list[int], labels: list[int]) -> TokenizedExample:
        limit = self._max_length
        if limit is None or len(ids) <= limit:
            return TokenizedExample(ids, labels)
        return TokenizedExample(ids[:limit], labels[:limit], truncated=True)

    def _slices(
        self, rendered: Rendered, encoding: Encoding, tokenized: TokenizedExample
    ) -> list[str]:
        pieces: list[str] = []
        seen = 0
        for id_, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            # Tokens that share one character (its bytes) show it once, at the first of them.
            pieces.append(rendered.text[seen:end] if end > start else self._piece(id_))
            seen = max(seen, end)
        extra = tokenized.input_ids[len(pieces) :]
        return [*pieces, *(self._piece(id_) for id_ in extra)]

    def _piece(self, id_: int) -> str:
        return str(self._tokenizer.decode([id_], skip_special_tokens=False))

    def _views(self, tokenized: TokenizedExample, pieces: list[str]) -> list[PreviewToken]:
        kept = zip(tokenized.input_ids, tokenized.labels, pieces, strict=False)
        return [
            PreviewToken(id_, piece, label != MASKED, id_ in self._special)
            for id_, label, piece in kept
        ]


def tokenise(
    example: Example,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    train_on: TrainOn = "completions",
    max_length: int | None = None,
) -> TokenizedExample:
    """One example; raises `BadRow`. What is longer than `max_length` tokens is cut at its end."""
    result = next(tokenise_all([example], tokenizer, template, train_on, max_length))
    if isinstance(result, BadRow):
        raise result
    return result


def tokenise_all(
    examples: Iterable[Example],
    tokenizer: Tokenizer,
    template: ChatTemplate,
    train_on: TrainOn = "completions",
    max_length: int | None = None,
) -> Iterator[TokenizedExample | BadRow]:
    """One result for each example, in order: its tokens, or the `BadRow` that says why not."""
    return RowEncoder(tokenizer, template, train_on, max_length).encode_all(examples)


def preview_tokens(
    example: Example,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    train_on: TrainOn = "completions",
    max_length: int | None = None,
) -> list[PreviewToken]:
    """What a person is shown of `tokenise`: the same tokens, as text."""
    return RowEncoder(tokenizer, template, train_on, max_length).preview(example)[1]
