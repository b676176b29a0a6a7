"""The fields of one row, read by our names through the user's mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from parsyn.rows.json_values import Values, kind_of
from parsyn.rows.mapping import Plan
from parsyn.rows.problems import BadRow, ProblemCode
from parsyn.rows.toolcalls import Tool, parse_tools
from parsyn.rows.turns import Message, looks_like_turns, parse_turns, structured


def user(content: str) -> Message:
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


@dataclass(frozen=True, slots=True)
class Fields:
    """Each method raises `BadRow` with the user's column name when the value does not fit."""

    values: Values
    plan: Plan

    def column(self, name: str) -> str:
        return self.plan.column(name)

    def get(self, name: str) -> Any:
        return self.values.get(self.column(name))

    def has(self, name: str) -> bool:
        return self.get(name) not in (None, "", [], {})

    def need(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            column = self.column(name)
            what = "is null" if column in self.values else "is missing"
            raise BadRow(
                ProblemCode.MISSING_COLUMN,
                f'"{column}" {what}. Fill it in or leave the row out.',
                column,
            )
        return value

    def text(self, name: str) -> str:
        text = self._text(name, self.need(name))
        if not text.strip():
            raise self.empty(name)
        return text

    def optional_text(self, name: str) -> str:
        value = self.get(name)
        return "" if value is None else self._text(name, value)

    def turns(self, name: str) -> list[Message]:
        return parse_turns(self.need(name), self.plan, self.column(name))

    def spoken(self, name: str, role: str) -> list[Message]:
        """Turns, or a bare text said by `role`."""
        value = self.need(name)
        if isinstance(value, str) and not looks_like_turns(value, self.plan):
            content = self.text(name)
            return [user(content) if role == "user" else assistant(content)]
        return self.turns(name)

    def is_bare(self, name: str) -> bool:
        value = self.need(name)
        return isinstance(value, str) and not looks_like_turns(value, self.plan)

    def under_system(self, messages: list[Message]) -> list[Message]:
        """The conversation with the row's own system prompt before it, if it has none yet."""
        system = self.optional_text("system")
        if not system.strip() or (messages and messages[0]["role"] == "system"):
            return messages
        return [{"role": "system", "content": system}, *messages]

    def tools(self) -> list[Tool] | None:
        return parse_tools(self.get("tools"), self.column("tools"))

    def integers(self, name: str, *, also: int = 0) -> list[int]:
        """A list of numbers from 0 up, or equal to `also`."""
        numbers = structured(self.need(name))
        fits = isinstance(numbers, list) and all(
            type(number) is int and (number >= 0 or number == also) for number in numbers
        )
        if not fits:
            raise BadRow(
                ProblemCode.BAD_INPUT_IDS,
                "A list of whole numbers is expected.",
                self.column(name),
            )
        return list(numbers)

    def empty(self, name: str) -> BadRow:
        column = self.column(name)
        return BadRow(
            ProblemCode.EMPTY_VALUE,
            f'"{column}" is empty. Fill it in or leave the row out.',
            column,
        )

    def _text(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise BadRow(
                ProblemCode.WRONG_TYPE,
                f"Text is expected, not {kind_of(value)}.",
                self.column(name),
            )
        return value
