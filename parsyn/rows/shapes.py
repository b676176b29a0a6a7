"""Which shape a file has, by whole column names and by content; what is open is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from parsyn.rows import contents
from parsyn.rows.json_values import Values
from parsyn.rows.mapping import SHAPES
from parsyn.wire.states import SchemaKind

SAMPLE_ROWS = 200

_ASKED = ("prompt", "question", "query", "input", "instruction", "user", "request", "source")
_SAID = ("completion", "answer", "response", "output", "reply", "target", "assistant", "solution")
_CONVERSATION = ("messages", "conversations")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible reading: a shape and the column of each field; the mapping alone says it."""

    schema_kind: SchemaKind
    mapping: dict[str, str]
    reason: str


@dataclass(frozen=True, slots=True)
class Recognition:
    """`schema_kind` is `unknown` when `needs_mapping`; `candidates` are then proposals.

    `mapping` is None when every column is called like its field.
    """

    schema_kind: SchemaKind
    mapping: dict[str, str] | None = None
    candidates: list[Candidate] = field(default_factory=list)
    needs_mapping: bool = False
    reasons: list[str] = field(default_factory=list)


def recognise(columns: Sequence[str], samples: Sequence[Values]) -> Recognition:
    """Judges the columns and some rows of a file. Never raises."""
    file = _File(columns, samples)
    readings = _readings(file)
    if len(readings) == 1:
        reading = readings[0]
        renamed = any(name != column for name, column in reading.mapping.items())
        mapping = reading.mapping if renamed else None
        return Recognition(reading.schema_kind, mapping, reasons=[reading.reason])
    if readings:
        kinds = " or ".join(dict.fromkeys(reading.schema_kind for reading in readings))
        reason = f"The columns can be read as {kinds}. Say which with a mapping."
        return Recognition(SchemaKind.UNKNOWN, None, readings, True, [reason])
    reason = "The columns fit no shape. Map them to prompt and completion, messages or text."
    return Recognition(SchemaKind.UNKNOWN, None, _proposals(file), True, [reason])


class _File:
    def __init__(self, columns: Sequence[str], samples: Sequence[Values]) -> None:
        self.columns = list(columns)
        self.samples = samples
        self._by_name: dict[str, str] = {}
        for column in columns:
            # "Prompt" and " prompt" are the whole name too, unless "prompt" is there as well.
            folded = column.strip().casefold()
            if column == folded or folded not in self._by_name:
                self._by_name[folded] = column

    def column(self, name: str) -> str | None:
        return self._by_name.get(name)

    def holds(self, name: str, fits: contents.Fits) -> bool:
        column = self.column(name)
        return column is not None and contents.most(self.samples, column, fits)

    def texts(self) -> list[str]:
        return [
            column
            for column in self.columns
            if contents.most(self.samples, column, contents.is_text)
        ]

    def reading(self, kind: SchemaKind, reason: str, **found: str | None) -> Candidate:
        """A reading with the optional fields of its shape that the file has too."""
        for name in SHAPES[kind].optional:
            found.setdefault(name, self.column(name))
        mapping = {name: column for name, column in found.items() if column is not None}
        return Candidate(kind, mapping, reason)


def _readings(file: _File) -> list[Candidate]:
    preference = _preference(file)
    conversations = _conversations(file, has_preference=preference is not None)
    pair = _prompt_completion(file)
    found = [preference] if preference else []
    found += _with_labels(file, conversations + ([pair] if pair else []))
    if file.holds("instruction", contents.is_text) and file.holds("output", contents.is_text):
        names = {name: file.column(name) for name in ("instruction", "output")}
        found.append(file.reading(SchemaKind.ALPACA, "instruction and output", **names))
    if file.holds("input_ids", contents.is_ids):
        column = file.column("input_ids")
        found.append(file.reading(SchemaKind.TOKENIZED, "lists of token ids", input_ids=column))
    found += _text(file, found)
    return found or _prompt_only(file)


def _conversations(file: _File, *, has_preference: bool) -> list[Candidate]:
    taken = {
        file.column(name) for name in ("chosen", "rejected", "prompt", "completion", "history")
    }
    columns = [
        column
        for column in file.columns
        if column not in taken and contents.most(file.samples, column, contents.is_conversation)
    ]
    if has_preference:
        # Turns that end with a question are the prompt of the two answers.
        columns = [c for c in columns if contents.most(file.samples, c, contents.ends_with_answer)]
    named = [c for c in columns if c.strip().casefold() in _CONVERSATION]
    return [_conversation(file, column) for column in named or columns]


def _conversation(file: _File, column: str) -> Candidate:
    is_from = contents.most(file.samples, column, lambda v: contents.turn_dialect(v) == "from")
    if is_from:
        reason = f'"{column}" holds from/value turns'
        return file.reading(SchemaKind.SHAREGPT, reason, conversations=column)
    return file.reading(
        SchemaKind.MESSAGES, f'"{column}" holds role/content turns', messages=column
    )


def _prompt_completion(file: _File) -> Candidate | None:
    if not all(file.holds(name, contents.is_speech) for name in ("prompt", "completion")):
        return None
    names = {name: file.column(name) for name in ("prompt", "completion")}
    return file.reading(SchemaKind.PROMPT_COMPLETION, "prompt and completion", **names)


def _preference(file: _File) -> Candidate | None:
    if not all(file.holds(name, contents.is_speech) for name in ("chosen", "rejected")):
        return None
    names = {name: file.column(name) for name in ("chosen", "rejected")}
    return file.reading(SchemaKind.PREFERENCE, "chosen and rejected", **names)


def _with_labels(file: _File, answered: list[Candidate]) -> list[Candidate]:
    """A true or false beside an answer makes it `kto`; 0 or 1 may also name a class."""
    name = next((name for name in ("label", "kto_tag") if file.column(name)), None)
    label = None if name is None else file.column(name)
    if label is None:
        return answered
    rated = [_rated(file, candidate, label) for candidate in answered]
    if contents.most(file.samples, label, contents.is_truth):
        return rated
    if contents.most(file.samples, label, contents.is_binary):
        return answered + rated
    return answered


def _rated(file: _File, candidate: Candidate, label: str) -> Candidate:
    reason = f'{candidate.reason}, rated by "{label}"'
    return file.reading(SchemaKind.KTO, reason, **{**candidate.mapping, "label": label})


def _text(file: _File, found: list[Candidate]) -> list[Candidate]:
    column = file.column("text")
    if column is None or not file.holds("text", contents.is_text):
        return []
    for reading in found:
        if contents.repeats(file.samples, column, _said_columns(file, reading)):
            return []
    return [file.reading(SchemaKind.TEXT, "text", text=column)]


def _said_columns(file: _File, reading: Candidate) -> list[str]:
    """The columns with the words of a reading, whichever of its shape's field sets it uses."""
    for fields in SHAPES[reading.schema_kind].required:
        columns = [reading.mapping.get(name, name) for name in fields - {"label"}]
        if all(column in file.columns for column in columns):
            return columns
    return []


def _prompt_only(file: _File) -> list[Candidate]:
    if not file.holds("prompt", contents.is_speech):
        return []
    prompt = file.column("prompt")
    readings = [file.reading(SchemaKind.PROMPT_ONLY, "prompt without an answer", prompt=prompt)]
    for name in _SAID:
        if file.holds(name, contents.is_speech):
            reason = f'"{file.column(name)}" may be the answer to the prompt'
            readings.append(
                file.reading(
                    SchemaKind.PROMPT_COMPLETION,
                    reason,
                    prompt=prompt,
                    completion=file.column(name),
                )
            )
    return readings


def _proposals(file: _File) -> list[Candidate]:
    """Guesses for a person to accept or change; nothing is read by them unasked."""
    texts = file.texts()
    if not texts:
        return []
    asked = _first(file, _ASKED, texts) or texts[0]
    rest = [column for column in texts if column != asked]
    proposals = []
    if rest:
        said = _first(file, _SAID, rest) or rest[0]
        reason = f'"{asked}" asks and "{said}" answers'
        proposals.append(
            Candidate(SchemaKind.PROMPT_COMPLETION, {"prompt": asked, "completion": said}, reason)
        )
    reason = f'"{texts[0]}" is learnt as running text'
    return [*proposals, Candidate(SchemaKind.TEXT, {"text": texts[0]}, reason)]


def _first(file: _File, names: Sequence[str], among: Sequence[str]) -> str | None:
    return next((c for name in names if (c := file.column(name)) in among), None)
