"""One conversation, as a list of messages, from the ways in which people write conversations."""

from __future__ import annotations

import json
from typing import Any, NotRequired, TypedDict

from parsyn.rows.json_values import kind_of, loads
from parsyn.rows.mapping import Plan
from parsyn.rows.problems import BadRow, ProblemCode
from parsyn.rows.toolcalls import ToolCall, parse_function_call, parse_tool_calls

_TURN_KEYS = (("role", "content"), ("from", "value"))
_REASONING = ("reasoning_content", "thinking", "reasoning")


class Message(TypedDict):
    """`content` is always text. `weight` 0 leaves an assistant's turn out of the training."""

    role: str
    content: str
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]
    reasoning_content: NotRequired[str]
    weight: NotRequired[float]


def structured(value: Any) -> Any:
    """A list or object, also when a cell holds it as JSON text; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return loads(value)
        except ValueError:
            return value
    return value


def looks_like_turns(value: Any, plan: Plan) -> bool:
    """Whether a value is one turn or a list of turns, JSON text included, whatever they say."""
    turns = structured(value)
    turns = [turns] if isinstance(turns, dict) else turns
    keys = {plan.role_key} if plan.role_key else {"role", "from"}
    return (
        isinstance(turns, list)
        and bool(turns)
        and all(isinstance(turn, dict) and not keys.isdisjoint(turn) for turn in turns)
    )


def parse_turns(value: Any, plan: Plan, column: str) -> list[Message]:
    """Raises `BadRow` naming the column and the turn."""
    turns = structured(value)
    if isinstance(turns, dict):
        turns = [turns]
    if not isinstance(turns, list):
        raise BadRow(
            ProblemCode.WRONG_TYPE, f"A list of turns is expected, not {kind_of(turns)}.", column
        )
    if not turns:
        raise BadRow(
            ProblemCode.EMPTY_VALUE, "The conversation is empty. Leave the row out.", column
        )
    messages: list[Message] = []
    for place, turn in enumerate(turns, 1):
        try:
            _append(messages, _parse_turn(turn, plan))
        except BadRow as bad:
            raise BadRow(bad.code, f"Turn {place}: {bad.message}", column) from None
    return messages


def is_trained(message: Message) -> bool:
    return message["role"] == "assistant" and message.get("weight", 1) > 0


def require_answer(messages: list[Message], column: str, *, last: bool = False) -> None:
    """Refuses a conversation without a turn to learn from, or that does not end in one."""
    if last and (not messages or messages[-1]["role"] != "assistant"):
        raise BadRow(
            ProblemCode.NO_ANSWER, "The conversation does not end with an assistant turn.", column
        )
    if not any(is_trained(message) for message in messages):
        raise BadRow(
            ProblemCode.NO_ANSWER,
            "No assistant turn is there to learn from (or all have weight 0).",
            column,
        )


def _append(messages: list[Message], message: Message) -> None:
    """Adjoining tool calls of the assistant are one turn, after whatever text led to them."""
    previous = messages[-1] if messages else None
    joins = (
        previous is not None
        and message["role"] == previous["role"] == "assistant"
        and "tool_calls" in message
        and not message["content"]
        and previous.get("weight") == message.get("weight")
    )
    if previous is None or not joins:
        messages.append(message)
        return
    calls = [*previous.get("tool_calls", []), *message["tool_calls"]]
    messages[-1] = {**previous, "tool_calls": calls}


def _parse_turn(turn: Any, plan: Plan) -> Message:
    if not isinstance(turn, dict):
        raise BadRow(ProblemCode.WRONG_TYPE, f"an object is expected, not {kind_of(turn)}.")
    role_key, content_key = _keys(turn, plan)
    role = _role(turn.get(role_key), role_key, plan)
    content = turn.get(content_key)
    if role == "function_call":
        message: Message = {"role": "assistant", "content": ""}
        message["tool_calls"] = parse_function_call(content)
    else:
        message = {"role": role, "content": _text(content)}
        _add_calls(message, turn)
    _add_extras(message, turn)
    if is_trained(message) and not message["content"].strip() and "tool_calls" not in message:
        raise BadRow(ProblemCode.EMPTY_VALUE, "the assistant says nothing.")
    return message


def _keys(turn: dict[str, Any], plan: Plan) -> tuple[str, str]:
    if plan.role_key is not None or plan.content_key is not None:
        return plan.role_key or "role", plan.content_key or "content"
    for role_key, content_key in _TURN_KEYS:
        if role_key in turn:
            return role_key, content_key
    raise BadRow(
        ProblemCode.WRONG_TYPE,
        'it has neither "role" and "content" nor "from" and "value". '
        "Name its keys with role_key and content_key in the mapping.",
    )


def _role(name: Any, role_key: str, plan: Plan) -> str:
    role = plan.roles.get(name.casefold()) if isinstance(name, str) else None
    if role is None:
        shown = json.dumps(name, ensure_ascii=False, default=str)[:60]
        raise BadRow(
            ProblemCode.UNKNOWN_ROLE,
            f'"{role_key}" is {shown}; it should be system, user, assistant or tool. '
            "Name other words for them in the mapping.",
        )
    return role


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part_text(part) for part in content)
    raise BadRow(
        ProblemCode.WRONG_TYPE,
        f"the content should be text or typed parts, not {kind_of(content)}.",
    )


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get("text") if isinstance(part, dict) else None
    if kind in (None, "text", "input_text", "output_text") and isinstance(text, str):
        return text
    raise BadRow(
        ProblemCode.UNSUPPORTED_CONTENT,
        f"a part of type {json.dumps(kind, default=str)[:40]} is not text. "
        "Only text can be trained on; leave the row out.",
    )


def _add_calls(message: Message, turn: dict[str, Any]) -> None:
    calls = turn.get("tool_calls")
    if calls:
        message["tool_calls"] = parse_tool_calls(calls)
    elif turn.get("function_call"):
        message["tool_calls"] = parse_function_call(turn["function_call"])
    if "tool_calls" in message and message["role"] != "assistant":
        raise BadRow(ProblemCode.BAD_TOOL_CALL, "only the assistant can call tools.")


def _add_extras(message: Message, turn: dict[str, Any]) -> None:
    weight = turn.get("weight")
    if weight is not None:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise BadRow(ProblemCode.WRONG_TYPE, "the weight should be 0 or 1.")
        message["weight"] = weight
    if isinstance(turn.get("tool_call_id"), str):
        message["tool_call_id"] = turn["tool_call_id"]
    if message["role"] == "tool" and isinstance(turn.get("name"), str):
        message["name"] = turn["name"]
    for key in _REASONING:
        if isinstance(turn.get(key), str) and message["role"] == "assistant":
            message["reasoning_content"] = turn[key]
            return
