"""A row of any shape as one `Example`, or the reason why it cannot be one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from parsyn.rows.fields import Fields, assistant, user
from parsyn.rows.json_values import Values
from parsyn.rows.mapping import Plan
from parsyn.rows.problems import BadRow, ProblemCode
from parsyn.rows.toolcalls import Tool
from parsyn.rows.turns import Message, require_answer, structured
from parsyn.wire.states import SchemaKind

MASKED = -100
"""The label of a token from which nothing is learnt."""

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Example:
    """One row in our own form; what a shape does not have is empty.

    `messages` is the whole conversation, or for `preference` and `prompt_only` what comes before
    the answer. `plain` is (prompt, completion) when the file gave bare strings. `labels` are token
    ids, `MASKED` where nothing is learnt.
    """

    kind: SchemaKind
    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] | None = None
    plain: tuple[str, str] | None = None
    text: str | None = None
    chosen: list[Message] | None = None
    rejected: list[Message] | None = None
    label: bool | None = None
    input_ids: list[int] | None = None
    labels: list[int] | None = None


def normalise(values: Values, plan: Plan) -> Example:
    """Raises `BadRow` with the column and what to do."""
    return _NORMALISERS[plan.schema_kind](Fields(values, plan))


def _messages(row: Fields) -> Example:
    messages = row.turns("messages")
    require_answer(messages, row.column("messages"))
    return Example(SchemaKind.MESSAGES, messages, row.tools())


def _sharegpt(row: Fields) -> Example:
    messages = row.turns("conversations")
    require_answer(messages, row.column("conversations"))
    return Example(SchemaKind.SHAREGPT, row.under_system(messages), row.tools())


def _alpaca(row: Fields) -> Example:
    row.need("instruction")
    asked = [row.optional_text("instruction"), row.optional_text("input")]
    prompt = "\n".join(part for part in asked if part.strip())
    if not prompt:
        raise row.empty("instruction")
    messages = [*_history(row), user(prompt), assistant(row.text("output"))]
    return Example(SchemaKind.ALPACA, row.under_system(messages))


def _history(row: Fields) -> list[Message]:
    if not row.has("history"):
        return []
    history = structured(row.get("history"))
    pairs = history if isinstance(history, list) else [history]
    if not all(_is_pair(pair) for pair in pairs):
        raise BadRow(
            ProblemCode.WRONG_TYPE,
            "The history should be a list of [question, answer].",
            row.column("history"),
        )
    return [turn for asked, said in pairs for turn in (user(asked), assistant(said))]


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)


def _prompt_completion(row: Fields) -> Example:
    prompt, answer = row.spoken("prompt", "user"), row.spoken("completion", "assistant")
    require_answer(answer, row.column("completion"))
    plain = None
    if row.is_bare("prompt") and row.is_bare("completion"):
        plain = (row.text("prompt"), row.text("completion"))
    return Example(SchemaKind.PROMPT_COMPLETION, [*prompt, *answer], row.tools(), plain)


def _text(row: Fields) -> Example:
    return Example(SchemaKind.TEXT, text=row.text("text"))


def _preference(row: Fields) -> Example:
    chosen, rejected = row.spoken("chosen", "assistant"), row.spoken("rejected", "assistant")
    if chosen == rejected:
        raise BadRow(
            ProblemCode.EMPTY_VALUE,
            "Chosen and rejected are the same. Leave the row out.",
            row.column("rejected"),
        )
    shared = _shared_turns(chosen, rejected)
    require_answer(chosen[shared:], row.column("chosen"), last=True)
    require_answer(rejected[shared:], row.column("rejected"), last=True)
    return Example(
        SchemaKind.PREFERENCE,
        row.under_system(chosen[:shared] or _preference_prompt(row)),
        row.tools(),
        chosen=chosen[shared:],
        rejected=rejected[shared:],
    )


def _shared_turns(chosen: list[Message], rejected: list[Message]) -> int:
    """How many turns both sides open with: the prompt, where it is written inside them."""
    shared = 0
    while shared < min(len(chosen), len(rejected)) and chosen[shared] == rejected[shared]:
        shared += 1
    return shared


def _preference_prompt(row: Fields) -> list[Message]:
    for name in ("prompt", "conversations", "messages"):
        if row.has(name):
            return row.spoken(name, "user")
    return []


def _kto(row: Fields) -> Example:
    label = _label(row)
    for name in ("messages", "conversations"):
        if row.has(name):
            messages = row.turns(name)
            require_answer(messages, row.column(name), last=True)
            return Example(SchemaKind.KTO, row.under_system(messages), row.tools(), label=label)
    return replace(_prompt_completion(row), kind=SchemaKind.KTO, label=label)


def _label(row: Fields) -> bool:
    value = row.need("label")
    if isinstance(value, str):
        value = _TRUTH.get(value.strip().casefold())
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise BadRow(ProblemCode.WRONG_TYPE, "The label should be true or false.", row.column("label"))


def _prompt_only(row: Fields) -> Example:
    return Example(SchemaKind.PROMPT_ONLY, row.spoken("prompt", "user"), row.tools())


def _tokenized(row: Fields) -> Example:
    ids = row.integers("input_ids")
    if not ids:
        raise row.empty("input_ids")
    labels = row.integers("labels", also=MASKED) if row.has("labels") else ids
    seen = row.integers("attention_mask") if row.has("attention_mask") else [1] * len(ids)
    for name, numbers in (("labels", labels), ("attention_mask", seen)):
        if len(numbers) != len(ids):
            raise BadRow(
                ProblemCode.BAD_INPUT_IDS,
                f"There are {len(numbers)} values for {len(ids)} input ids.",
                row.column(name),
            )
    kept = [place for place, mask in enumerate(seen) if mask]
    if all(labels[place] == MASKED for place in kept):
        raise BadRow(ProblemCode.NO_ANSWER, "No token is left to learn from.", row.column("labels"))
    return Example(
        SchemaKind.TOKENIZED,
        input_ids=[ids[place] for place in kept],
        labels=[labels[place] for place in kept],
    )


_NORMALISERS: Mapping[SchemaKind, Callable[[Fields], Example]] = {
    SchemaKind.MESSAGES: _messages,
    SchemaKind.SHAREGPT: _sharegpt,
    SchemaKind.ALPACA: _alpaca,
    SchemaKind.PROMPT_COMPLETION: _prompt_completion,
    SchemaKind.TEXT: _text,
    SchemaKind.PREFERENCE: _preference,
    SchemaKind.KTO: _kto,
    SchemaKind.PROMPT_ONLY: _prompt_only,
    SchemaKind.TOKENIZED: _tokenized,
}
