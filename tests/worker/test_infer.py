"""The inference child against transformers' own `generate`, on a tiny random model."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from parsyn.plugin.task import LocalModel
from parsyn.wire.worker import ChatDone, Sampling, Token
from parsyn_worker.events import (
    EVENTS_FD,
    CancelOrder,
    ChatOrder,
    InferSettings,
    LoadOrder,
    UnloadOrder,
    answers,
)
from tests.worker.raw_answers import PROMPTS, TOKENS

GREEDY = Sampling(temperature=0, max_tokens=TOKENS)
WAIT = 60


class Desk:
    """The child with its pipes; `ask` gives everything that it says of one chat."""

    def __init__(self, **settings: Any) -> None:
        read, write = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parsyn_worker.infer"],
            stdin=subprocess.PIPE,
            pass_fds=(write,),
            env={
                **os.environ,
                EVENTS_FD: str(write),
                "HF_HUB_OFFLINE": "1",
                "OMP_NUM_THREADS": "1",
            },
            start_new_session=True,
        )
        os.close(write)
        self.events = os.fdopen(read, "rb")
        self.said: queue.Queue[Token | ChatDone] = queue.Queue()
        self._others: list[Token | ChatDone] = []
        threading.Thread(target=self._read, daemon=True).start()
        values = {"quantization": "none", "trust_remote_code": False, "max_models": 1, **settings}
        self.send(InferSettings(device="cpu", **values))

    def send(self, order: BaseModel) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(order.model_dump_json().encode() + b"\n")
        self.process.stdin.flush()

    def next_of(self, chat_id: str) -> Token | ChatDone:
        for message in self._others:
            if message.chat_id == chat_id:
                self._others.remove(message)
                return message
        while (message := self.said.get(timeout=WAIT)).chat_id != chat_id:
            self._others.append(message)
        return message

    def finish(self, chat_id: str) -> tuple[list[Token], ChatDone]:
        tokens = []
        while isinstance(message := self.next_of(chat_id), Token):
            tokens.append(message)
        return tokens, message

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT)

    def _read(self) -> None:
        with self.events:
            for line in self.events:
                self.said.put(answers.validate_json(line))


@pytest.fixture(scope="module")
def desk(raw: Path) -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.close()


def order(raw: Path, chat_id: str, name: str = "model", **values: Any) -> ChatOrder:
    adapter = raw / name if name.startswith("adapter") else None
    path = raw / ("other" if name == "other" else "model")
    prompt = values.pop("prompt", PROMPTS[0])
    values = {"messages": ({"role": "user", "content": prompt},), "sampling": GREEDY, **values}
    return ChatOrder(
        chat_id=chat_id,
        asked_at=time.time(),
        model_id=len(name),
        model=LocalModel(path=path, adapter=adapter, name=name),
        **values,
    )


def ask(desk: Desk, raw: Path, chat_id: str, **values: Any) -> tuple[str, ChatDone]:
    desk.send(order(raw, chat_id, **values))
    tokens, done = desk.finish(chat_id)
    if done.failure:
        print(done.failure)
    return "".join(token.text for token in tokens), done


@pytest.fixture(scope="module")
def expected(raw: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((raw / "answers.json").read_text())
    return found


@pytest.mark.parametrize("prompt", PROMPTS)
def test_streams_what_generate_answers(
    desk: Desk, raw: Path, expected: dict[str, dict[str, str]], prompt: str
) -> None:
    text, done = ask(desk, raw, "greedy", prompt=prompt)
    assert text == expected["model"][prompt]
    assert done.usage.prompt_tokens > 5
    assert done.finish_reason in ("stop", "length")
    if done.finish_reason == "length":
        assert done.usage.completion_tokens == TOKENS
    assert 0 < done.timings.first_token_seconds <= done.timings.total_seconds
    assert done.timings.tokens_per_second > 0


def test_adapters_answer_as_themselves_and_leave_the_base_alone(
    desk: Desk, raw: Path, expected: dict[str, dict[str, str]]
) -> None:
    prompt = PROMPTS[0]
    answers = {name: expected[name][prompt] for name in ("model", "adapter-1", "adapter-2")}
    assert len(set(answers.values())) == 3
    for name in ("adapter-1", "model", "adapter-2", "adapter-1", "model"):
        assert ask(desk, raw, name, name=name)[0] == answers[name]


def test_answers_in_turns(desk: Desk, raw: Path, expected: dict[str, dict[str, str]]) -> None:
    names = ("model", "adapter-1", "adapter-2")
    for name in names:
        desk.send(order(raw, f"turns-{name}", name=name))
    for name in names:
        tokens, _ = desk.finish(f"turns-{name}")
        assert "".join(token.text for token in tokens) == expected[name][PROMPTS[0]]
        assert [t.n for t in tokens if t.text] == list(
            range(1, 1 + sum(1 for t in tokens if t.text))
        )


def test_the_least_recently_used_base_goes(
    desk: Desk, raw: Path, expected: dict[str, dict[str, str]]
) -> None:
    def phases(name: str) -> list[str | None]:
        desk.send(order(raw, "lru", name=name))
        tokens, _ = desk.finish("lru")
        assert "".join(token.text for token in tokens) == expected[name][PROMPTS[0]]
        return [token.phase for token in tokens if token.phase]

    phases("model")
    assert phases("model") == ["generating"]
    assert phases("other") == ["loading", "generating"]
    assert phases("model") == ["loading", "generating"]
    desk.send(UnloadOrder(model_id=len("model")))
    assert phases("model") == ["loading", "generating"]
    desk.send(LoadOrder(model_id=9, model=LocalModel(path=raw / "other")))
    assert phases("other") == ["generating"]


def test_a_seed_repeats_an_answer(desk: Desk, raw: Path) -> None:
    sampling = Sampling(temperature=1.0, top_p=0.9, max_tokens=20, seed=7)
    first, _ = ask(desk, raw, "seed", sampling=sampling)
    again, _ = ask(desk, raw, "seed", sampling=sampling)
    other, _ = ask(desk, raw, "seed", sampling=sampling.model_copy(update={"seed": 8}))
    assert first == again != other


def test_a_stop_string_ends_the_answer_and_is_not_shown(
    desk: Desk, raw: Path, expected: dict[str, dict[str, str]]
) -> None:
    whole = expected["model"][PROMPTS[0]]
    stop = whole[10:14]
    sampling = GREEDY.model_copy(update={"stop": ("never said", stop)})
    text, done = ask(desk, raw, "stop", sampling=sampling)
    assert text == whole[: whole.index(stop)]
    assert done.finish_reason == "stop"
    assert done.usage.completion_tokens < TOKENS


def test_top_k_of_one_is_greedy(desk: Desk, raw: Path, expected: dict[str, dict[str, str]]) -> None:
    sampling = Sampling(temperature=1.5, top_k=1, max_tokens=TOKENS)
    assert ask(desk, raw, "k", sampling=sampling)[0] == expected["model"][PROMPTS[0]]


def test_cancel_in_the_middle(desk: Desk, raw: Path) -> None:
    sampling = Sampling(temperature=2, max_tokens=400)
    desk.send(order(raw, "long", sampling=sampling, raw_prompt="The quick brown"))
    while not (isinstance(message := desk.next_of("long"), Token) and message.text):
        pass
    desk.send(CancelOrder(chat_id="long"))
    _, done = desk.finish("long")
    assert done.finish_reason in ("cancelled", "stop")
    assert done.usage.completion_tokens < 400


def test_too_long_a_conversation_says_so(desk: Desk, raw: Path) -> None:
    text, done = ask(desk, raw, "overflow", prompt="0 " * 600)
    assert text == ""
    assert done.finish_reason == "error"
    assert done.failure is not None
    assert done.failure.reason == "user_error"
    assert "at most 512" in done.failure.message


def test_an_answer_ends_with_the_context(desk: Desk, raw: Path) -> None:
    sampling = Sampling(temperature=0, max_tokens=5000)
    _, done = ask(desk, raw, "full", sampling=sampling, prompt="0 " * 150)
    total = done.usage.prompt_tokens + done.usage.completion_tokens
    assert total <= 512
    assert done.finish_reason == ("length" if total == 512 else "stop")


def test_a_model_that_is_not_there(desk: Desk, raw: Path, tmp_path: Path) -> None:
    broken = order(raw, "none").model_copy(update={"model": LocalModel(path=tmp_path, name="x")})
    desk.send(broken)
    _, done = desk.finish("none")
    assert done.failure is not None
    assert done.failure.reason == "model_unavailable"
    assert ask(desk, raw, "after")[1].finish_reason in ("stop", "length")
