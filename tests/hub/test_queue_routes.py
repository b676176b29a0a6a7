"""The queue over HTTP: its order, who may change it, and how a refusal is said."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.services.context import Context
from tests.hub.conftest import Person
from tests.hub.job_stage import make_dataset, make_model


@pytest.fixture
async def body(context: Context, owner: Person) -> dict[str, Any]:
    return {"model_id": make_model(context, owner), "dataset_id": make_dataset(context, owner)}


async def queued(who: Person, body: dict[str, Any], name: str, **more: Any) -> int:
    project = {"project_id": body["project_id"]} if "project_id" in body else {}
    made = await who.post("/training-jobs", {**body, **project, "name": name, **more})
    assert made.status == 201, made.raw
    assert (await who.post(f"/training-jobs/{made.body['id']}/start")).status == 200
    return int(made.body["id"])


async def names(who: Person) -> list[str]:
    return [item["job"]["name"] for item in (await who.get("/queue")).body["items"]]


async def test_dragging_a_job_to_another_place(owner: Person, body: dict[str, Any]) -> None:
    ids = [await queued(owner, body, name) for name in "abcd"]
    assert await names(owner) == ["a", "b", "c", "d"]
    moved = await owner.post(f"/queue/{ids[3]}/move", {"before_id": ids[1]})
    assert (moved.status, moved.body["name"]) == (200, "d")
    assert await names(owner) == ["a", "d", "b", "c"]
    await owner.post(f"/queue/{ids[0]}/move", {"after_id": ids[2]})
    assert await names(owner) == ["d", "b", "c", "a"]
    await owner.post(f"/queue/{ids[2]}/move", {"before_id": ids[3]})
    assert await names(owner) == ["c", "d", "b", "a"]
    shown = (await owner.get("/queue?limit=2&offset=1")).body
    assert [item["position"] for item in shown["items"]] == [2, 3]
    assert (shown["total"], shown["hidden"]) == (4, 0)
    assert shown["items"][0]["movable"]


async def test_moving_often_between_two_never_mixes_them_up(
    owner: Person, body: dict[str, Any]
) -> None:
    ids = [await queued(owner, body, name) for name in "abcd"]
    for n in range(40):
        await owner.post(f"/queue/{ids[n % 2 + 1]}/move", {"after_id": ids[0]})
        assert (await names(owner))[:2] == ["a", "bc"[n % 2]]


async def test_what_is_no_move(owner: Person, body: dict[str, Any]) -> None:
    first, second = [await queued(owner, body, name) for name in "ab"]
    pending = (await owner.post("/training-jobs", body)).body["id"]
    for wrong, words in (
        ({}, "before_id or after_id"),
        ({"before_id": first, "after_id": first}, "before_id or after_id"),
        ({"before_id": second}, "itself"),
        ({"before_id": 999}, "no such job"),
        ({"before_id": pending}, "no such job"),
    ):
        answer = await owner.post(f"/queue/{second}/move", wrong)
        assert answer.status == 422, wrong
        assert words in str(answer.body)
    late = await owner.post(f"/queue/{pending}/move", {"before_id": first})
    assert late.code == "invalid_state"
    raised = await owner.ask("PATCH", f"/queue/{first}", {"priority": "high"})
    assert (raised.status, raised.body["priority"]) == (200, "high")
    apart = await owner.post(f"/queue/{second}/move", {"before_id": first})
    assert "give both the same one first" in apart.body["detail"]


async def test_priority_goes_before_order(owner: Person, body: dict[str, Any]) -> None:
    ids = [await queued(owner, body, name) for name in "abc"]
    await owner.ask("PATCH", f"/queue/{ids[2]}", {"priority": "high"})
    await owner.ask("PATCH", f"/queue/{ids[0]}", {"priority": "low"})
    assert await names(owner) == ["c", "b", "a"]
    made = await owner.post("/training-jobs", {**body, "priority": "high"})
    assert made.body["priority"] == "high"
    unknown = await owner.post("/training-jobs", {**body, "priority": "urgent"})
    assert (unknown.status, unknown.body["errors"][0]["loc"]) == (422, ["priority"])
    causes = (await owner.get(f"/training-jobs/{ids[2]}/events")).body["items"]
    assert causes[-1]["cause"] == "Its priority is high now."


async def test_high_is_for_admins(
    owner: Person, other: Person, editor: Person, context: Context, body: dict[str, Any]
) -> None:
    job = await queued(owner, body, "a")
    assert (await editor.ask("PATCH", f"/queue/{job}", {"priority": "high"})).status == 403
    assert (await editor.ask("PATCH", f"/queue/{job}", {"priority": "low"})).status == 200
    theirs = {"model_id": make_model(context, other, "T"),
              "dataset_id": make_dataset(context, other, "T")}  # fmt: skip
    alone = await other.post("/training-jobs", {**theirs, "priority": "high"})
    assert alone.status == 403
    assert "personal project" in alone.body["detail"]


async def test_people_take_turns_and_see_only_theirs(
    owner: Person, other: Person, editor: Person, context: Context, body: dict[str, Any]
) -> None:
    first, second = [await queued(owner, body, name) for name in ("a1", "a2")]
    theirs = {"model_id": make_model(context, other, "T"),
              "dataset_id": make_dataset(context, other, "T")}  # fmt: skip
    await queued(other, theirs, "b1")
    shown = (await owner.get("/queue")).body
    assert [(i["job"]["name"], i["position"]) for i in shown["items"]] == [("a1", 1), ("a2", 3)]
    assert (shown["total"], shown["hidden"]) == (2, 1)
    assert [item["position"] for item in (await other.get("/queue")).body["items"]] == [2]
    colleague = await queued(editor, {**body, "project_id": owner.project_id}, "c1")
    mixed = await owner.post(f"/queue/{colleague}/move", {"before_id": first})
    assert "People take turns" in mixed.body["detail"]
    assert (await editor.post(f"/queue/{second}/move", {"before_id": first})).status == 200
    assert await names(owner) == ["a2", "c1", "a1"]


async def test_viewers_see_and_move_nothing(
    owner: Person, viewer: Person, body: dict[str, Any]
) -> None:
    first, second = [await queued(owner, body, name) for name in "ab"]
    items = (await viewer.get("/queue")).body["items"]
    assert [item["movable"] for item in items] == [False, False]
    assert (await viewer.post(f"/queue/{second}/move", {"before_id": first})).status == 403
    assert (await viewer.ask("PATCH", f"/queue/{second}", {"priority": "low"})).status == 403
