"""Which worker answers, and how an answer ends that no worker ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.answers import MAX_CHARACTERS, Answer, AnswerEvent, End, Limits, Piece, Reader
from parsyn.hub.chat import CROWDED, FULL, ChatRouter
from parsyn.services.inference import Target
from parsyn.wire.api.chat import PhaseEvent
from parsyn.wire.refs import FileRef, ModelRef
from parsyn.wire.states import FailureReason, WorkerStatus, WorkerType
from parsyn.wire.tasks import Failure
from parsyn.wire.worker import Chat, ChatCancel, ChatDone, HubMessage, Sampling, Token, Usage

DEADLINE = 5.0
BASE = ModelRef(
    id=1, name="Base", slug="base", files=(FileRef(path="a", key="k/a", size=1, sha256=""),)
)
TUNED = ModelRef(
    id=2,
    name="Tuned",
    slug="tuned",
    base=BASE,
    files=(FileRef(path="b", key="k/b", size=1, sha256=""),),
)
ANOTHER = ModelRef(id=3, name="Another", slug="another", hub_id="org/name")


@dataclass
class Worker:
    worker_id: int
    project_id: int = 1
    worker_type: str = WorkerType.BOTH
    status: str = WorkerStatus.IDLE
    user_id: int = 3
    kind: str = "user"

    @property
    def name(self) -> str:
        return f"w{self.worker_id}"


@dataclass
class Exchange:
    """Stands where the broker does; keeps what was sent."""

    workers: list[Worker]
    sent: list[tuple[int, HubMessage]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def refresh(self) -> None:
        pass

    def connections(self) -> list[Worker]:
        return self.workers

    def forget(self, chat_id: str) -> None:
        pass

    def pass_on(self, worker_id: int, message: Token | ChatDone) -> None:
        pass

    def model_of(self, worker_id: int, chat_id: str) -> ModelRef | None:
        return None

    def worker_gone(self, worker_id: int) -> None:
        pass

    async def send(self, worker_id: int, message: HubMessage) -> None:
        if worker_id in self.gone:
            raise ConnectionError
        self.sent.append((worker_id, message))
        self.woken.set()

    async def wait_for_cancel(self) -> ChatCancel:
        async with asyncio.timeout(DEADLINE):
            while not isinstance(self.sent[-1][1], ChatCancel):
                self.woken.clear()
                await self.woken.wait()
        message = self.sent[-1][1]
        assert isinstance(message, ChatCancel)
        return message


def router(*workers: Worker, limits: Limits | None = None) -> tuple[ChatRouter, Exchange]:
    exchange = Exchange(list(workers))
    return ChatRouter(exchange, limits), exchange


async def begin(
    chat: ChatRouter, model: ModelRef = BASE, projects: tuple[int, ...] = (1,)
) -> Answer:
    target = Target(model, user_id=7, projects=projects, defaults={})
    return await chat.open(target, [{"role": "user", "content": "hi"}], Sampling())


async def read(answer: Answer) -> AsyncIterator[AnswerEvent]:
    reader = Reader(answer)
    while not reader.at_end:
        found = await reader.next(DEADLINE)
        assert found is not None, "nothing came"
        yield found[1]


async def last(answer: Answer) -> End:
    async with asyncio.timeout(DEADLINE):
        return await answer.ended()


# --- who answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "word"),
    [
        ([], "parsyn start"),
        ([Worker(1, project_id=9)], "parsyn start"),
        ([Worker(1, worker_type=WorkerType.FINE_TUNER)], "only fine-tune"),
        (
            [Worker(1, status=WorkerStatus.PAUSED), Worker(2, status=WorkerStatus.DRAINING)],
            "Resume",
        ),
    ],
)
async def test_without_a_fitting_worker_it_says_what_to_do(
    workers: list[Worker], word: str
) -> None:
    chat, exchange = router(*workers)
    with pytest.raises(ParsynError, match=word) as caught:
        await begin(chat)
    assert caught.value.code == ErrorCode.NO_WORKER
    assert caught.value.status == 503
    assert caught.value.retry_after
    assert exchange.sent == []


async def test_the_worker_that_has_the_model_in_memory_comes_before_an_idle_one() -> None:
    chat, _ = router(Worker(1), Worker(2, status=WorkerStatus.TRAINING))
    first = await begin(chat)
    assert first.worker_id == 1, "idle before training"
    second = await begin(chat, ANOTHER)
    assert second.worker_id == 1, "idle before training, even with an answer under way"
    chat.worker_gone(1)
    chat.broker.workers[0].status = WorkerStatus.TRAINING  # type: ignore[attr-defined]
    chat.broker.workers[1].status = WorkerStatus.IDLE  # type: ignore[attr-defined]
    third = await begin(chat)
    chat.broker.workers[0].status = WorkerStatus.IDLE  # type: ignore[attr-defined]
    fourth = await begin(chat, TUNED)
    assert (third.worker_id, fourth.worker_id) == (2, 2), "the adapter goes where its base is"


async def test_a_crowded_worker_is_left_alone() -> None:
    chat, _ = router(Worker(1), Worker(2))
    for _ in range(CROWDED):
        assert (await begin(chat)).worker_id == 1
    assert (await begin(chat)).worker_id == 2


async def test_a_worker_takes_no_more_answers_than_it_can() -> None:
    chat, _ = router(Worker(1))
    first = await begin(chat)
    for _ in range(FULL - 1):
        await begin(chat)
    with pytest.raises(ParsynError, match="try again"):
        await begin(chat)
    chat.deliver(1, ChatDone(chat_id=first.chat_id, finish_reason="stop"))
    assert (await begin(chat)).worker_id == 1


async def test_workers_of_the_models_own_project_come_first() -> None:
    chat, _ = router(Worker(1, project_id=2), Worker(2, project_id=1, status=WorkerStatus.BUSY))
    assert (await begin(chat, projects=(1, 2))).worker_id == 2


async def test_ones_own_worker_and_the_houses_may_answer_from_any_project() -> None:
    for far in (Worker(1, project_id=9, user_id=7), Worker(1, project_id=9, kind="managed")):
        chat, _ = router(far)
        assert (await begin(chat)).worker_id == 1
        chat, _ = router(far, Worker(2))
        assert (await begin(chat)).worker_id == 2, "the model's own project comes first"


async def test_a_worker_fetches_the_files_of_its_own_running_chat_only() -> None:
    chat, _ = router(Worker(1))
    answer = await begin(chat, TUNED)
    asked = [(1, "k/a"), (1, "k/b"), (1, "k/c"), (2, "k/a")]
    assert [chat.may_fetch(id, answer.chat_id, key) for id, key in asked] == [
        True,
        True,
        False,
        False,
    ]
    assert not chat.may_fetch(1, "unknown", "k/a")
    chat.deliver(1, ChatDone(chat_id=answer.chat_id, finish_reason="stop"))
    assert not chat.may_fetch(1, answer.chat_id, "k/a")


# --- what comes -------------------------------------------------------------------------------


async def test_phases_and_pieces_come_in_order_and_the_end_last() -> None:
    chat, exchange = router(Worker(1))
    answer = await begin(chat)
    sent = exchange.sent[0][1]
    assert isinstance(sent, Chat)
    assert sent.chat_id == answer.chat_id
    seen: list[AnswerEvent] = []
    async for event in read(answer):
        seen.append(event)
        if isinstance(event, PhaseEvent) and event.phase == "waiting":
            chat.deliver(1, Token(chat_id=answer.chat_id, n=0, phase="loading", done=1, total=2))
        elif isinstance(event, PhaseEvent):
            chat.deliver(1, Token(chat_id=answer.chat_id, n=1, text="He"))
            chat.deliver(1, Token(chat_id=answer.chat_id, n=2, text="llo"))
            usage = Usage(prompt_tokens=3, completion_tokens=2)
            done = ChatDone(chat_id=answer.chat_id, finish_reason="stop", usage=usage)
            chat.deliver(1, done)
    assert seen == [
        PhaseEvent(phase="waiting", worker_name="w1"),
        PhaseEvent(phase="loading", done=1, total=2, worker_name="w1"),
        Piece("Hello"),
        End("stop", usage),
    ]


async def test_what_another_worker_says_about_a_chat_is_dropped() -> None:
    chat, _ = router(Worker(1), Worker(2))
    answer = await begin(chat)
    chat.deliver(2, Token(chat_id=answer.chat_id, n=1, text="no"))
    chat.deliver(2, ChatDone(chat_id=answer.chat_id, finish_reason="stop"))
    chat.deliver(1, ChatDone(chat_id="unknown", finish_reason="stop"))
    assert answer.text == ""
    assert answer.end is None


async def test_two_answers_are_read_side_by_side() -> None:
    chat, _ = router(Worker(1))
    answers = [await begin(chat), await begin(chat, ANOTHER)]
    reader = Reader(*answers)
    seen: list[tuple[int, AnswerEvent]] = []
    while not reader.at_end:
        found = await reader.next(DEADLINE)
        assert found is not None
        seen.append(found)
        index, event = found
        if isinstance(event, PhaseEvent):
            chat.deliver(1, Token(chat_id=answers[index].chat_id, n=1, text=f"side {index}"))
        elif isinstance(event, Piece):
            chat.deliver(1, ChatDone(chat_id=answers[index].chat_id, finish_reason="length"))
    for index in (0, 1):
        mine = [event for side, event in seen if side == index]
        assert mine[1:] == [Piece(f"side {index}"), End("length")]


# --- how it ends ------------------------------------------------------------------------------


async def test_a_worker_that_goes_away_ends_its_answers_only() -> None:
    chat, _ = router(Worker(1), Worker(2, status=WorkerStatus.BUSY))
    lost = await begin(chat)
    for _ in range(CROWDED - 1):
        await begin(chat)
    kept = await begin(chat)
    assert (lost.worker_id, kept.worker_id) == (1, 2)
    chat.deliver(1, Token(chat_id=lost.chat_id, n=1, text="half an"))
    chat.worker_gone(1)
    end = await last(lost)
    assert end.finish_reason == FailureReason.WORKER_LOST
    assert end.error is not None
    assert "w1 went away" in end.error.detail
    assert lost.text == "half an"
    assert kept.end is None


async def test_a_worker_whose_socket_breaks_at_the_question_is_gone() -> None:
    chat, exchange = router(Worker(1))
    exchange.gone.add(1)
    end = await last(await begin(chat))
    assert end.finish_reason == FailureReason.WORKER_LOST


async def test_the_reason_of_a_failed_answer_is_its_workers() -> None:
    chat, _ = router(Worker(1))
    answer = await begin(chat)
    failure = Failure(
        reason=FailureReason.OUT_OF_MEMORY, message="It does not fit.", advice="Use a smaller one."
    )
    chat.deliver(1, ChatDone(chat_id=answer.chat_id, finish_reason="error", failure=failure))
    end = await last(answer)
    assert end.finish_reason == FailureReason.OUT_OF_MEMORY
    assert end.error is not None
    assert end.error.detail == "It does not fit. Use a smaller one."


async def test_cancelling_tells_the_worker_and_keeps_its_last_word() -> None:
    chat, exchange = router(Worker(1))
    answer = await begin(chat)
    answer.cancel()
    assert (await exchange.wait_for_cancel()).chat_id == answer.chat_id
    chat.deliver(1, Token(chat_id=answer.chat_id, n=1, text="last word"))
    usage = Usage(completion_tokens=1)
    chat.deliver(1, ChatDone(chat_id=answer.chat_id, finish_reason="cancelled", usage=usage))
    assert await last(answer) == End("cancelled", usage)
    assert answer.text == "last word"


async def test_a_cancelled_worker_that_stays_silent_is_not_waited_for() -> None:
    chat, _ = router(Worker(1), limits=Limits(cancel=0.01))
    answer = await begin(chat)
    answer.cancel()
    assert (await last(answer)).finish_reason == "cancelled"


@pytest.mark.parametrize("limits", [Limits(silence=0.02), Limits(answer=0.02)])
async def test_an_answer_that_takes_too_long_is_given_up(limits: Limits) -> None:
    chat, exchange = router(Worker(1), limits=limits)
    answer = await begin(chat)
    end = await last(answer)
    assert end.finish_reason == FailureReason.TIMEOUT
    assert end.error is not None
    assert end.error.status == 504
    await exchange.wait_for_cancel()


async def test_words_put_off_the_limit_of_silence() -> None:
    chat, _ = router(Worker(1), limits=Limits(silence=0.2))
    answer = await begin(chat)
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(0.15, chat.deliver, 1, Token(chat_id=answer.chat_id, n=1, text="a"))
    await last(answer)
    assert loop.time() - began >= 0.34


async def test_a_reader_who_takes_nothing_stops_the_worker() -> None:
    chat, exchange = router(Worker(1), limits=Limits(reader=0.0))
    answer = await begin(chat)
    await asyncio.sleep(0)
    chat.deliver(1, Token(chat_id=answer.chat_id, n=1, text="a"))
    chat.deliver(1, Token(chat_id=answer.chat_id, n=2, text="b"))
    await exchange.wait_for_cancel()
    assert answer.cancelled


async def test_an_endless_answer_is_cut() -> None:
    chat, exchange = router(Worker(1))
    answer = await begin(chat)
    chat.deliver(1, Token(chat_id=answer.chat_id, n=1, text="x" * (MAX_CHARACTERS + 1)))
    assert (await last(answer)).error is not None
    await exchange.wait_for_cancel()
