"""Models of the Hugging Face Hub, against a small one of its kind."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsyn.plugin.task import TaskFailure
from parsyn.wire.refs import ModelRef
from parsyn.wire.tasks import DownloadSpec
from parsyn.wire.worker import Offer, Result
from parsyn_worker.config import AgentConfig
from parsyn_worker.hub_models import HubModel, HubModels
from parsyn_worker.snapshot import copy_small_files, describe
from tests.worker.conftest import Started
from tests.worker.fake_hub import FakeHub
from tests.worker.fake_huggingface import COMMIT, FakeHuggingFace

CONFIG = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 2048}


def safetensors(*shapes: tuple[int, ...]) -> bytes:
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            **{f"t{i}": {"dtype": "BF16", "shape": s} for i, s in enumerate(shapes)},
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * 64


@pytest.fixture
def hugging_face(config: AgentConfig, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHuggingFace]:
    hub = FakeHuggingFace()
    hub.files["acme/tiny"] = {
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer.json": b"{}",
        "chat_template.jinja": b"{{ messages }}",
        "LICENSE": b"Apache",
        "model.safetensors": safetensors((10, 20), (5,)),
        "pytorch_model.bin": b"pickle",
        "onnx/model.onnx": b"onnx",
        "consolidated.safetensors": b"twice",
    }
    hub.files["acme/pickled"] = {"config.json": b"{}", "pytorch_model.bin": b"pickle"}
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with hub.serving():
        yield hub


def models(config: AgentConfig, hub: FakeHuggingFace, token: str | None = None) -> HubModels:
    return HubModels(dataclasses.replace(config, hf_endpoint=hub.url, hf_token=token))


async def fetch(found: HubModels, hub_id: str, revision: str | None = None) -> HubModel:
    return await found.model(hub_id, revision, lambda done, total: None)


async def test_an_import_brings_facts_and_small_files(
    hub: FakeHub, start_agent: Started, config: AgentConfig, hugging_face: FakeHuggingFace
) -> None:
    agent = await start_agent(dataclasses.replace(config, hf_endpoint=hugging_face.url))
    model = ModelRef(id=5, name="Tiny", slug="tiny", hub_id="acme/tiny", revision="main")
    spec = DownloadSpec(model=model)
    await hub.send(Offer(task_id=4, attempt=1, job_id=40, name="import", spec=spec))
    result = await hub.wait_for(Result)
    assert result.failure is None
    assert result.manifest is not None
    assert result.manifest.facts == {
        "architecture": "LlamaForCausalLM",
        "context_length": 2048,
        "parameters": 205,
        "license": "apache-2.0",
        "revision": COMMIT,
        "size": result.manifest.facts["size"],
    }
    assert {file.path for file in result.manifest.files} == {
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "LICENSE",
    }
    fetched = " ".join(hugging_face.requests)
    assert "model.safetensors" in fetched
    for unwanted in ("pytorch_model.bin", "onnx", "consolidated"):
        assert unwanted not in fetched

    asked = len(hugging_face.requests)
    pinned = model.model_copy(update={"revision": COMMIT})
    local = await agent.chats.inputs.for_chat(pinned, None, lambda done, total: None)  # type: ignore[arg-type]
    assert (local.path / "model.safetensors").exists()
    assert len(hugging_face.requests) == asked, "a pinned revision is asked for once"


async def test_reasons_in_words(config: AgentConfig, hugging_face: FakeHuggingFace) -> None:
    hugging_face.files["acme/gated"] = hugging_face.files["acme/tiny"]
    hugging_face.gated.add("acme/gated")
    found = models(config, hugging_face)
    for hub_id, revision, words in (
        ("acme/none", None, "no public model acme/none"),
        ("acme/tiny", "nope", "no acme/tiny at nope"),
        ("acme/gated", None, "is gated"),
        ("acme/pickled", None, "no weights in safetensors"),
        ("a/b/c", None, "is no model id"),
    ):
        with pytest.raises(TaskFailure) as caught:
            await fetch(found, hub_id, revision)
        assert caught.value.failure.reason == "model_unavailable"
        assert words in caught.value.failure.message
        assert caught.value.failure.advice
    with_token = models(config, hugging_face, token="hf_good")
    assert (await fetch(with_token, "acme/gated")).facts["revision"] == COMMIT


async def test_without_a_network(config: AgentConfig) -> None:
    unreachable = HubModels(dataclasses.replace(config, hf_endpoint="http://127.0.0.1:9"))
    with pytest.raises(TaskFailure, match="could not be reached"):
        await fetch(unreachable, "acme/tiny")


def test_a_damaged_header_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    facts = describe(tmp_path)
    assert (facts["architecture"], facts["parameters"], facts["context_length"]) == (None,) * 3
    copy_small_files(tmp_path, tmp_path / "small")
    assert [path.name for path in (tmp_path / "small").iterdir()] == ["config.json"]
