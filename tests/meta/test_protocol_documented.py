"""docs/protocol.md has every message, close code and event; tests exercise each message."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from parsyn.wire import events, worker
from parsyn.wire.events import EventType
from parsyn.wire.worker import CloseCode
from tests.meta.tree import doc, has_test, section, table_rows


def members(union: Any) -> list[type[Any]]:
    """The models of an annotated union."""
    return list(get_args(get_args(union)[0]))


def type_of(message: type[Any]) -> str:
    return str(message.model_fields["type"].default)


FROM_WORKER = members(worker.WorkerMessage)
FROM_HUB = members(worker.HubMessage)
FROM_CLIENT = members(events.ClientMessage)


def first_cells(title: str) -> list[str]:
    return [row[0].strip("`") for row in table_rows(section(doc("protocol.md"), title))]


@pytest.mark.parametrize(
    ("title", "messages"),
    [
        ("From the agent", FROM_WORKER),
        ("From the hub", FROM_HUB),
        ("From the browser", FROM_CLIENT),
    ],
)
def test_messages_are_documented_in_order(title: str, messages: list[type[Any]]) -> None:
    assert first_cells(title) == [type_of(message) for message in messages]


def test_close_codes_are_documented() -> None:
    rows = table_rows(section(doc("protocol.md"), "Close codes"))
    assert [(row[0], row[1].strip("`")) for row in rows] == [
        (str(int(c)), c.name) for c in CloseCode
    ]


def test_events_are_documented() -> None:
    assert first_cells("To the browser") == [str(event) for event in EventType]


def test_the_protocol_number_is_the_one_in_the_code() -> None:
    assert f"The protocol number is {worker.PROTOCOL}." in doc("protocol.md")


@pytest.mark.parametrize("message", FROM_WORKER + FROM_HUB, ids=type_of)
def test_a_message_is_exercised_by_a_test(message: type[Any]) -> None:
    name = type_of(message)
    by_class = rf"\b{message.__name__}\("
    by_type = rf"""["']type["']\s*(?::|\]\s*==|,)\s*["']{name}["']"""
    by_isinstance = rf"\b{message.__name__}\b"
    assert has_test(by_class) or has_test(by_type) or has_test(by_isinstance), (
        f"no test outside tests/meta makes, expects or names {message.__name__} (`{name}`)"
    )


@pytest.mark.parametrize("code", list(CloseCode), ids=lambda code: code.name)
def test_a_close_code_is_exercised_by_a_test(code: CloseCode) -> None:
    assert has_test(rf"CloseCode\.{code.name}\b|\b{int(code)}\b"), (
        f"no test outside tests/meta expects {code.name} ({int(code)})"
    )


def test_every_message_says_its_own_type_once() -> None:
    for union in (FROM_WORKER, FROM_HUB, FROM_CLIENT):
        names = [type_of(message) for message in union]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z_]+", name) for name in names)
