"""What a model's files say about it, and the files that are refused; all of it in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.services.model_facts import inspect, is_kept, template_of
from tests.hub.tiny_model import CONFIG, TEMPLATE, model_files, safetensors


@dataclass(frozen=True)
class MemoryFiles:
    """Names and contents."""

    contents: Mapping[str, bytes]

    @property
    def sizes(self) -> Mapping[str, int]:
        return {name: len(data) for name, data in self.contents.items()}

    def read(self, name: str, length: int, offset: int = 0) -> bytes:
        return self.contents[name][offset : offset + length]


def without(*names: str) -> dict[str, bytes]:
    return {name: data for name, data in model_files().items() if name not in names}


def config(**more: Any) -> dict[str, bytes]:
    return {**model_files(), "config.json": json.dumps({**CONFIG, **more}).encode()}


def weights(data: bytes) -> dict[str, bytes]:
    return {**model_files(), "model.safetensors": data}


BAD_MODELS = {
    "no config": (without("config.json"), "config.json"),
    "no weights": (without("model.safetensors"), ".safetensors"),
    "no tokenizer": (without("tokenizer.json"), "tokenizer"),
    "adapter": ({"adapter_config.json": b"{}", "adapter.safetensors": safetensors()}, "adapter"),
    "config no json": ({**model_files(), "config.json": b"{"}, "not valid JSON"),
    "config a list": ({**model_files(), "config.json": b"[1]"}, "not a JSON object"),
    "config deep": ({**model_files(), "config.json": b"[" * 100_000}, "not valid JSON"),
    "auto_map": (config(auto_map={"AutoModel": "evil.Model"}), "auto_map"),
    "deep trust": (config(a=[{"b": {"trust_remote_code": True}}]), "trust_remote_code"),
    "attention": (config(_attn_implementation_internal="evil"), "_attn_implementation"),
    "tokenizer code": (
        {**model_files(), "tokenizer_config.json": b'{"auto_map": {}}'},
        "tokenizer_config.json",
    ),
    "shard": (
        {
            **model_files(),
            "model.safetensors.index.json": b'{"weight_map": {"w": "model-2.safetensors"}}',
        },
        "model-2.safetensors",
    ),
    "cut header": (weights(b"\x10"), "cut off"),
    "huge header": (weights(b"\xff" * 8 + b"{}"), "cut off"),
    "no header": (weights(safetensors()[:8] + b"x" * 90), "not valid JSON"),
    "cut data": (weights(safetensors(data=bytes(5))), "5 bytes"),
    "more data": (weights(safetensors(data=bytes(20))), "20 bytes"),
    "size lies": (
        weights(safetensors({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 12]}})),
        "contradicts",
    ),
    "overflow": (
        weights(
            safetensors({"w": {"dtype": "U8", "shape": [2**40, 2**40], "data_offsets": [0, 12]}})
        ),
        "contradicts",
    ),
    "negative": (
        weights(safetensors({"w": {"dtype": "U8", "shape": [-12], "data_offsets": [0, -12]}})),
        "contradicts",
    ),
    "odd type": (
        weights(safetensors({"w": {"dtype": "PY", "shape": [12], "data_offsets": [0, 12]}})),
        "contradicts",
    ),
    "overlap": (
        weights(
            safetensors(
                {
                    "a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
                    "b": {"dtype": "U8", "shape": [8], "data_offsets": [4, 12]},
                }
            )
        ),
        "overlap",
    ),
}


@pytest.mark.parametrize("bad", BAD_MODELS)
def test_models_that_are_refused_say_why(bad: str) -> None:
    files, words = BAD_MODELS[bad]
    with pytest.raises(ParsynError) as caught:
        inspect(MemoryFiles(files))
    assert caught.value.code is ErrorCode.UNSUPPORTED
    assert words in caught.value.detail
    assert "\n" not in caught.value.detail


def test_a_good_model_is_described() -> None:
    facts = inspect(MemoryFiles(model_files()))
    assert facts.architecture == "LlamaForCausalLM"
    assert (facts.parameters, facts.context_length) == (6, 512)
    assert (facts.chat_template, facts.license) == (TEMPLATE, "apache-2.0")


NAMED = b'{"chat_template": [{"name": "default", "template": "D"}]}'


@pytest.mark.parametrize(
    ("files", "template"),
    [
        ({}, None),
        ({"tokenizer_config.json": b'{"chat_template": "T"}'}, "T"),
        ({"chat_template.jinja": b"J", "tokenizer_config.json": b'{"chat_template": "T"}'}, "J"),
        (
            {"tokenizer_config.json": b'{"chat_template": [{"name": "default", "template": "D"}]}'},
            "D",
        ),
        ({"tokenizer_config.json": b'{"chat_template": 7}'}, None),
        ({"tokenizer_config.json": b"{"}, None),
        ({"chat_template.jinja": b"\xff"}, None),
    ],
)
def test_where_a_chat_template_is_found(files: dict[str, bytes], template: str | None) -> None:
    assert template_of(MemoryFiles(files)) == template


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"n_positions": 7}, 7),
        ({"text_config": {"max_position_embeddings": 9}}, 9),
        ({"max_position_embeddings": True}, None),
        ({"max_position_embeddings": "8"}, None),
        ({"max_position_embeddings": -1}, None),
    ],
)
def test_where_the_context_length_is_found(config: dict[str, Any], length: int | None) -> None:
    files = {**model_files(), "config.json": json.dumps(config).encode()}
    assert inspect(MemoryFiles(files)).context_length == length


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("config.json", True),
        ("model-00001-of-00002.safetensors", True),
        ("LICENSE", True),
        ("pytorch_model.bin", False),
        ("modeling_evil.py", False),
        (".gitattributes", False),
    ],
)
def test_which_files_of_a_folder_belong_to_the_model(name: str, kept: bool) -> None:
    assert is_kept(name) is kept
