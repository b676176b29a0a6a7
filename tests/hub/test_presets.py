"""Presets: those of the trainers, one's own, and jobs that start from them."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.services.context import Context
from tests.hub.conftest import Person
from tests.hub.job_stage import make_dataset, make_model


async def make(who: Person, name: str = "Ours", **more: Any) -> dict[str, Any]:
    answer = await who.post("/presets", {"name": name, "config": {"lr": 1e-4}, **more})
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.body
    return found


async def names(who: Person, query: str = "") -> list[str]:
    page = (await who.get(f"/presets{query}")).body
    assert page["total"] >= len(page["items"])
    return [item["name"] for item in page["items"]]


async def test_the_trainers_own_come_first_and_are_complete(owner: Person) -> None:
    await make(owner, "A first one")
    page = (await owner.get("/presets?trainer=sft")).body
    bundled = [item for item in page["items"] if item["builtin"]]
    assert [item["name"] for item in page["items"]][-1] == "A first one"
    assert {"balanced", "quick", "low_memory"} <= {item["name"] for item in bundled}
    for item in bundled:
        assert item["id"] is None
        assert item["description"].endswith(".")
        assert item["title"] != item["name"]
    assert await names(owner, "?trainer=none") == []
    assert len(await names(owner, "?limit=2&offset=1")) == 2


async def test_a_preset_is_kept_under_our_names_changed_and_deleted(owner: Person) -> None:
    made = await make(owner, description="For short answers.")
    assert made["config"] == {"learning_rate": 1e-4}
    assert (made["project_id"], made["builtin"]) == (owner.project_id, False)
    path = f"/presets/{made['id']}"
    changed = await owner.patch(path, {"name": "Short", "config": {"lora_rank": 8}})
    assert changed.body["config"] == {"lora_r": 8}
    assert changed.body["description"] == "For short answers."
    assert (await owner.patch(path, {"description": None})).body["description"] is None
    assert "Short" in await names(owner)
    assert (await owner.delete(path)).status == 204
    assert "Short" not in await names(owner)
    assert (await owner.delete(path)).status == 404


@pytest.mark.parametrize(
    ("change", "loc", "words"),
    [
        ({"name": "Taken"}, ["name"], "already"),
        ({"name": "quick"}, ["name"], "comes with the trainer"),
        ({"name": "Quick try"}, ["name"], "comes with the trainer"),
        ({"trainer": "magic"}, ["trainer"], "Installed: sft"),
        ({"config": {"lora_rr": 8}}, ["config", "lora_rr"], "lora_r"),
        ({"config": {"epochs": -1}}, ["config", "epochs"], "above 0 and up to 1000"),
        ({"project_id": 99}, ["project_id"], "no such project"),
    ],
)
async def test_what_is_refused(
    owner: Person, change: dict[str, Any], loc: list[str], words: str
) -> None:
    await make(owner, "Taken")
    answer = await owner.post("/presets", {"name": "New", **change})
    assert (answer.status, answer.body["errors"][0]["loc"]) == (422, loc)
    assert words in answer.body["errors"][0]["msg"]


async def test_who_sees_and_changes_them(
    owner: Person, other: Person, viewer: Person, editor: Person, anonymous: Person
) -> None:
    path = f"/presets/{(await make(owner))['id']}"
    assert "Ours" in await names(viewer)
    assert "Ours" not in await names(other)
    assert "Ours" not in await names(editor, "?project_id=1000")
    for who, status in ((anonymous, 401), (other, 404), (viewer, 403), (editor, 200)):
        assert (await who.patch(path, {"name": "Mine"})).status == status
    assert (
        await viewer.post("/presets", {"name": "x", "project_id": owner.project_id})
    ).status == 403
    assert (await other.delete(path)).status == 404
    assert (await viewer.delete(path)).status == 403


@pytest.fixture
def ingredients(context: Context, owner: Person) -> dict[str, int]:
    return {"model_id": make_model(context, owner), "dataset_id": make_dataset(context, owner)}


@pytest.mark.parametrize(
    ("config", "rank", "steps"),
    [
        ({}, 8, 60),
        ({"lora_rank": 4}, 4, 60),
        ({"max_steps": 5}, 8, 5),
        ({"max_steps": None}, 8, None),
    ],
)
async def test_a_job_starts_from_a_preset_and_what_it_says_itself_wins(
    owner: Person, ingredients: dict[str, int], config: dict[str, Any], rank: int, steps: int | None
) -> None:
    made = await owner.post("/training-jobs", {**ingredients, "preset": "quick", "config": config})
    assert made.status == 201, made.body
    resolved = made.body["resolved_config"]
    assert (made.body["preset"], resolved["lora_r"], resolved["max_steps"]) == (
        "quick",
        rank,
        steps,
    )
    copy = await owner.post(f"/training-jobs/{made.body['id']}/duplicate", {})
    assert copy.body["resolved_config"] == resolved


async def test_a_jobs_settings_outlive_its_preset(
    owner: Person, ingredients: dict[str, int]
) -> None:
    preset = await make(owner)
    made = await owner.post("/training-jobs", {**ingredients, "preset": "Ours"})
    assert made.body["resolved_config"]["learning_rate"] == 1e-4
    await owner.delete(f"/presets/{preset['id']}")
    assert (await owner.post(f"/training-jobs/{made.body['id']}/start")).status == 200
    copy = await owner.post(f"/training-jobs/{made.body['id']}/duplicate", {})
    assert copy.body["resolved_config"]["learning_rate"] == 1e-4


async def test_anothers_preset_is_no_preset(
    owner: Person, other: Person, ingredients: dict[str, int]
) -> None:
    await make(other, "Theirs")
    answer = await owner.post("/training-jobs", {**ingredients, "preset": "Theirs"})
    assert (answer.status, answer.body["errors"][0]["loc"]) == (422, ["preset"])
