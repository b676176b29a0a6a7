"""Sampling in layers, defaults that come with a model, titles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parsyn.services import accounts, inference, turns
from parsyn.services.context import Context
from parsyn.services.inference import merged
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import Project
from parsyn.wire.states import ModelSource, ModelState, Role


def test_later_layers_win_and_none_is_absent() -> None:
    sampling = merged({"temperature": 0.1, "top_k": 3}, {"temperature": None}, {"top_k": 4})
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.1, 4, 1.0)


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("Hello", "Hello"),
        ("  two\n\nlines ", "two lines"),
        ("word " * 30, "word " * 11 + "word…"),
        ("x" * 100, "x" * 60 + "…"),
    ],
)
def test_a_title_is_the_beginning_of_the_first_message(content: str, title: str) -> None:
    assert turns.title_of(content) == title


@pytest.fixture
def who(context: Context) -> Principal:
    with context.database.transaction():
        user = accounts.create_user("a@example.org", "A", "long enough", Role.USER, "no hash")
        return Principal(user.id, Role.USER, ALL_SCOPES, "bearer")


def make_model(context: Context, who: Principal, config: bytes | None, **columns: Any) -> int:
    with context.database.transaction():
        row = Model.create(
            user=who.user_id,
            project=Project.get(Project.owner == who.user_id),
            name="m",
            slug=f"m{Model.select().count()}",
            state=ModelState.READY,
            source=ModelSource.IMPORT,
            formats=["hf"],
            **columns,
        )
        if config is not None:
            key = f"models/{row.id}/generation_config.json"
            info = context.storage.put(key, [config])
            ModelFile.create(
                model=row, path="generation_config.json", key=key, size=info.size,
                sha256=info.sha256,
            )  # fmt: skip
        return int(row.id)


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        ({"temperature": 0.6, "top_k": 20, "bos_token_id": 1}, {"temperature": 0.6, "top_k": 20}),
        ({"do_sample": False, "temperature": 0.6}, {"temperature": 0.0}),
        ({"temperature": "hot"}, {}),
        ({"eos_token_id": 2}, {}),
        ([1], {}),
    ],
)  # fmt: skip
def test_a_model_brings_its_own_defaults(
    context: Context, who: Principal, config: Any, defaults: dict[str, Any]
) -> None:
    base = make_model(context, who, json.dumps(config).encode())
    tuned = make_model(context, who, None, base_model=base)
    with context.database.connection():
        for model in (base, tuned):
            assert inference.target_of(context, who, model).defaults == defaults


@pytest.mark.parametrize("config", [b"{", b"\xff\xfe", b"[" * 60_000, b" " * 70_000])
def test_an_unreadable_config_is_none(context: Context, who: Principal, config: bytes) -> None:
    model = make_model(context, who, config)
    with context.database.connection():
        assert inference.target_of(context, who, model).defaults == {}
