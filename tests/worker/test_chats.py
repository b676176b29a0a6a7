"""Chats through the agent: its files by tickets, its tokens over the socket."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from parsyn.wire.refs import ModelRef
from parsyn.wire.states import WorkerType
from parsyn.wire.worker import Chat, ChatCancel, ChatDone, Sampling, Token, WantTicket
from parsyn_worker import chats
from parsyn_worker.config import AgentConfig
from tests.worker.conftest import Started, eventually
from tests.worker.fake_hub import FakeHub


@pytest.fixture
def folder(raw: Path) -> Path:
    return raw / "model"


def model(hub: FakeHub, folder: Path) -> ModelRef:
    files = [
        hub.put_object(f"models/1/{path.name}", path.read_bytes(), path.name)
        for path in sorted(folder.iterdir())
    ]
    return ModelRef(id=1, name="Tiny", slug="tiny", files=tuple(files))


def chat(hub: FakeHub, folder: Path, chat_id: str, **sampling: object) -> Chat:
    return Chat(
        chat_id=chat_id,
        model=model(hub, folder),
        messages=({"role": "user", "content": "Hello!"},),
        sampling=Sampling.model_validate({"temperature": 0, "max_tokens": 8, **sampling}),
    )


async def done(hub: FakeHub, chat_id: str) -> ChatDone:
    return await hub.wait_for(ChatDone, lambda message: message.chat_id == chat_id)


async def test_a_chat_from_its_files_to_its_end(
    hub: FakeHub, start_agent: Started, folder: Path
) -> None:
    await start_agent()
    await hub.send(chat(hub, folder, "a"))
    first = await done(hub, "a")
    assert first.finish_reason in ("stop", "length")
    wants = hub.of(WantTicket)
    assert {want.chat_id for want in wants} == {"a"}
    phases = [token.phase for token in hub.of(Token) if token.phase]
    assert phases[-2:] == ["loading", "generating"]
    tokens = [token for token in hub.of(Token) if token.chat_id == "a" and token.text]
    assert [token.n for token in tokens] == list(range(1, len(tokens) + 1))

    await hub.send(chat(hub, folder, "b"))
    again = await done(hub, "b")
    assert hub.of(WantTicket) == wants, "the files were here already"
    assert again.usage == first.usage
    assert again.timings.load_seconds < first.timings.load_seconds

    # Cancelled in the middle of it, and the next one is none the worse.
    await hub.send(chat(hub, folder, "c", temperature=2, max_tokens=400, seed=1))
    await hub.wait_for(Token, lambda token: token.chat_id == "c" and bool(token.text))
    await hub.send(ChatCancel(chat_id="c"))
    assert (await done(hub, "c")).finish_reason in ("cancelled", "stop")

    # The child is killed: the chat says so, the next one has a new child.
    (child,) = filter(is_inferer, psutil.Process().children())
    await hub.send(chat(hub, folder, "d", temperature=2, max_tokens=400, seed=1))
    await hub.wait_for(Token, lambda token: token.chat_id == "d")
    child.kill()
    died = await done(hub, "d")
    assert died.finish_reason in ("error", "stop")
    if died.failure:
        assert died.failure.reason == "out_of_memory"
    await hub.send(chat(hub, folder, "e"))
    assert (await done(hub, "e")).usage == first.usage


def is_inferer(process: psutil.Process) -> bool:
    try:
        return "parsyn_worker.infer" in process.cmdline()
    except psutil.NoSuchProcess:  # also what ended and is not yet reaped
        return False


async def test_a_fine_tuner_answers_no_chats(
    hub: FakeHub, start_agent: Started, config: AgentConfig, folder: Path
) -> None:
    await start_agent(dataclasses.replace(config, worker_type=WorkerType.FINE_TUNER))
    await hub.send(chat(hub, folder, "a"))
    refused = await done(hub, "a")
    assert refused.failure is not None
    assert "only fine-tunes" in refused.failure.message


async def test_an_answer_has_a_time_limit(
    hub: FakeHub,
    start_agent: Started,
    config: AgentConfig,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chats, "GRACE_SECONDS", 0.1)
    agent = await start_agent(dataclasses.replace(config, inference_timeout=0.01))
    await hub.send(chat(hub, folder, "a", temperature=2, max_tokens=400, seed=1))
    late = await done(hub, "a")
    assert late.failure is not None
    assert late.failure.reason == "timeout"
    assert "INFERENCE_TIMEOUT_SECONDS" in (late.failure.advice or "")
    assert agent.chats.open_count == 0


async def test_a_model_whose_files_are_gone(
    hub: FakeHub, start_agent: Started, folder: Path
) -> None:
    await start_agent()
    asked = chat(hub, folder, "a")
    hub.objects.data.clear()
    await hub.send(asked)
    failed = await done(hub, "a")
    assert failed.finish_reason == "error"
    assert failed.failure is not None
    assert "There is no such file" in failed.failure.message


async def test_chats_end_with_the_connection(
    hub: FakeHub, start_agent: Started, folder: Path
) -> None:
    agent = await start_agent()
    hub.objects.fail_next = [503] * 10_000
    await hub.send(chat(hub, folder, "a"))
    await hub.wait_for(WantTicket)
    await hub.vanish()
    await eventually(lambda: agent.chats.open_count == 0, "a chat outlived the connection")


def test_the_agent_imports_no_torch() -> None:
    code = "import sys, parsyn_worker.main as m; print([n for n in sys.modules if 'torch' == n])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert json.loads(out.stdout) == []
