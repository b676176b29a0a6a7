"""Tools and calls to them, in the one form that chat templates expect."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from parsyn.rows.json_values import kind_of, loads
from parsyn.rows.problems import BadRow, ProblemCode

Tool = dict[str, Any]


class Function(TypedDict):
    name: str
    arguments: Any


class ToolCall(TypedDict):
    """`arguments` is an object, never JSON text: templates write it with `tojson`."""

    type: str
    function: Function
    id: NotRequired[str]


def parse_tool_calls(value: Any) -> list[ToolCall]:
    """An assistant's `tool_calls`."""
    if not isinstance(value, list):
        raise BadRow(
            ProblemCode.BAD_TOOL_CALL, f"tool_calls should be a list, not {kind_of(value)}."
        )
    return [_parse_call(call) for call in value]


def parse_function_call(value: Any) -> list[ToolCall]:
    """The value of a `function_call` turn: one call or a list of them, mostly as JSON text."""
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            raise BadRow(
                ProblemCode.BAD_TOOL_CALL,
                'the function call is not JSON. Write {"name": …, "arguments": {…}}.',
            ) from None
    return [_parse_call(call) for call in (value if isinstance(value, list) else [value])]


def _parse_call(call: Any) -> ToolCall:
    function = call.get("function", call) if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise BadRow(
            ProblemCode.BAD_TOOL_CALL,
            'a call has no name. Write {"function": {"name": …, "arguments": {…}}}.',
        )
    arguments = function.get("arguments", function.get("parameters"))
    parsed: ToolCall = {
        "type": "function",
        "function": {"name": name, "arguments": _arguments(arguments, name)},
    }
    if isinstance(call.get("id"), str):
        parsed["id"] = call["id"]
    return parsed


def _arguments(value: Any, name: str) -> Any:
    if isinstance(value, str) and value.strip():
        try:
            value = loads(value)
        except ValueError:
            value = "not JSON"
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise BadRow(
            ProblemCode.BAD_TOOL_CALL, f'the arguments of "{name[:60]}" are not a JSON object.'
        )
    return value


def parse_tools(value: Any, column: str) -> list[Tool] | None:
    """The tools of a row, each as `{"type": "function", "function": {…}}`; None for none."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = loads(value)
        except ValueError:
            raise BadRow(
                ProblemCode.BAD_TOOLS, "The tools are not JSON. Write a list of schemas.", column
            ) from None
    tools = [value] if isinstance(value, dict) else value
    if not tools:
        return None
    if not isinstance(tools, list) or not all(_names_itself(tool) for tool in tools):
        raise BadRow(
            ProblemCode.BAD_TOOLS,
            'The tools should be a list of {"name": …, "parameters": {…}} objects.',
            column,
        )
    return [
        tool if "function" in tool else {"type": "function", "function": tool} for tool in tools
    ]


def _names_itself(tool: Any) -> bool:
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
