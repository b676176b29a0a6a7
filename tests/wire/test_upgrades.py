"""Agents and hubs of one protocol number understand each other, whichever is the older.

`recorded/` holds what releases really sent, and the shape of their messages. A release that this
code must get on with is added there and never changed afterwards. What fails here is a reason for
a new protocol number, or for another way to say it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from parsyn.wire.worker import PROTOCOL, hub_messages, is_unknown, worker_messages

RECORDED = [
    json.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "recorded").glob("*.json"))
]
READERS: dict[str, TypeAdapter[Any]] = {"worker": worker_messages, "hub": hub_messages}
FRAMES = [
    pytest.param(side, frame, id=f"{release['version']}-{side}-{n}-{frame['type']}")
    for release in RECORDED
    if release["protocol"] == PROTOCOL
    for side in READERS
    for n, frame in enumerate(release[side])
]


def says(meant: Any, understood: Any) -> bool:
    """Whether everything that was meant is in what was understood."""
    if isinstance(meant, dict):
        return isinstance(understood, dict) and all(
            key in understood and says(value, understood[key]) for key, value in meant.items()
        )
    if isinstance(meant, list):
        return len(meant) == len(understood) and all(map(says, meant, understood))
    return bool(meant == understood)


def with_more(value: Any) -> Any:
    """As a newer version would say it: with a field more, at every level."""
    if isinstance(value, dict) and "type" in value | {"kind": 0, "key": 0}:
        return {**{k: with_more(v) for k, v in value.items()}, "from_the_future": [1]}
    return [with_more(item) for item in value] if isinstance(value, list) else value


def test_every_kind_of_message_was_recorded() -> None:
    for release in RECORDED:
        for side in READERS:
            types = {
                shape["properties"]["type"]["const"]
                for shape in release[f"{side}_types"].values()
                if "type" in shape.get("properties", {})
            }
            assert types == {frame["type"] for frame in release[side]}


@pytest.mark.parametrize(("side", "frame"), FRAMES)
def test_what_an_older_one_says_is_understood(side: str, frame: dict[str, Any]) -> None:
    understood = READERS[side].validate_json(json.dumps(frame)).model_dump(mode="json")
    assert says(frame, understood)


@pytest.mark.parametrize(("side", "frame"), FRAMES)
def test_what_a_newer_one_adds_is_ignored(side: str, frame: dict[str, Any]) -> None:
    reader = READERS[side]
    assert reader.validate_json(json.dumps(with_more(frame))) == reader.validate_python(frame)


@pytest.mark.parametrize("side", READERS)
def test_a_message_of_a_type_that_is_not_known_is_told_from_nonsense(side: str) -> None:
    def unknown(frame: str) -> bool:
        with pytest.raises(ValidationError) as refused:
            READERS[side].validate_json(frame)
        return is_unknown(refused.value)

    assert unknown('{"type": "from_the_future", "anything": 1}')
    for nonsense in ("{", "[]", "{}", '{"type": "cancel"}', '{"type": "state"}'):
        if side == "worker" and nonsense == '{"type": "cancel"}':
            continue
        if side == "hub" and nonsense == '{"type": "state"}':
            continue
        assert not unknown(nonsense), nonsense


@pytest.mark.parametrize("release", RECORDED, ids=lambda release: str(release["version"]))
@pytest.mark.parametrize("side", READERS)
def test_messages_keep_their_shape(side: str, release: dict[str, Any]) -> None:
    """In both directions: the older may be the one that reads."""
    if release["protocol"] != PROTOCOL:
        return
    now = READERS[side].json_schema()["$defs"]
    found = [
        difference
        for name, old in release[f"{side}_types"].items()
        for difference in differences(name, old, now.get(name))
    ]
    assert not found, "\n".join(found)


def differences(name: str, old: dict[str, Any], new: dict[str, Any] | None) -> Iterator[str]:
    if new is None:
        yield f"{name} is gone"
        return
    if "enum" in old and set(old["enum"]) != set(new["enum"]):
        yield f"{name} has other values: {sorted(set(old['enum']) ^ set(new['enum']))}"
    before, after = old.get("properties", {}), new.get("properties", {})
    for field in sorted(set(old.get("required", ())) - set(after)):
        yield f"{name}.{field} is gone, and an older reader insists on it"
    for field in sorted(set(new.get("required", ())) - set(before)):
        yield f"{name}.{field} is wanted, and an older writer does not send it"
    for field in sorted(set(before) & set(after)):
        if bare(before[field]) != bare(after[field]):
            yield f"{name}.{field} was {before[field]}, is {after[field]}"


def bare(schema: Any) -> Any:
    """Without words and defaults, which no reader minds; alternatives in any order."""
    if isinstance(schema, dict):
        kept = {k: bare(v) for k, v in schema.items() if k not in ("title", "description")}
        kept.pop("default", None)
        if "discriminator" in kept:
            return {"one of": "the kinds that each side knows"}
        return {k: sorted(v, key=str) if k in ("anyOf", "enum") else v for k, v in kept.items()}
    return [bare(item) for item in schema] if isinstance(schema, list) else schema
