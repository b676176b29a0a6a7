"""From a question to a worker and back: who answers, and which answer a token belongs to."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Protocol, cast

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.answers import Answer, Limits, Loading
from parsyn.hub.hub import Hub
from parsyn.services.inference import Target
from parsyn.wire.refs import ModelRef
from parsyn.wire.states import FailureReason, WorkerStatus, WorkerType
from parsyn.wire.worker import Chat, ChatCancel, ChatDone, HubMessage, Sampling, Token

log = logging.getLogger(__name__)
PROMPTING = frozenset({WorkerType.BOTH, WorkerType.PROMPTER})
MANAGED = "managed"
RESTING = frozenset({WorkerStatus.PAUSED, WorkerStatus.DRAINING, WorkerStatus.OFFLINE})
# A worker with so many answers under way is no faster than one that must load the model first.
CROWDED = 4
FULL = 64
REMEMBERED_MODELS = 2
REMEMBERED_SECONDS = 1000


class PromptingWorker(Protocol):
    """What the router must know of a connected worker."""

    @property
    def worker_id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def worker_type(self) -> str: ...
    @property
    def project_id(self) -> int: ...
    @property
    def user_id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def status(self) -> str: ...


class Switchboard(Protocol):
    """The workers of every hub process, as far as the router needs them.

    `pass_on` takes what is said in chats of other processes, `model_of` knows what those ask.
    """

    async def refresh(self) -> None: ...
    def connections(self) -> Iterable[PromptingWorker]: ...
    async def send(self, worker_id: int, message: HubMessage) -> None: ...
    def forget(self, chat_id: str) -> None: ...
    def pass_on(self, worker_id: int, message: Token | ChatDone) -> None: ...
    def model_of(self, worker_id: int, chat_id: str) -> ModelRef | None: ...
    def worker_gone(self, worker_id: int) -> None: ...


def router_of(hub: Hub) -> ChatRouter:
    """The chat router of a hub process, made at the first call; the relay must be there."""
    if "chat" not in hub.parts:
        relay = hub.parts["relay"]
        hub.parts["chat"] = relay_to = ChatRouter(relay)
        relay.deliver = relay_to.deliver
    return cast("ChatRouter", hub.parts["chat"])


class ChatRouter:
    """Lives on the event loop of one hub process, whose answers it keeps."""

    def __init__(self, broker: Switchboard, limits: Limits | None = None) -> None:
        self.broker = broker
        self.limits = limits or Limits()
        self._answers: dict[str, Answer] = {}
        self._loaded: dict[int, list[int]] = {}
        self._seconds: dict[tuple[int, int], float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # --- called by the worker socket ----------------------------------------------------------

    def deliver(self, worker_id: int, message: Token | ChatDone) -> None:
        """A token or the end of an answer. One for an answer that is gone or not its own is
        dropped."""
        answer = self._answers.get(message.chat_id)
        if answer is None:
            self.broker.pass_on(worker_id, message)
        elif answer.worker_id == worker_id:
            answer.take(message)

    def worker_gone(self, worker_id: int) -> None:
        """The socket closed: its answers end here with an error that says so."""
        self._loaded.pop(worker_id, None)
        self.broker.worker_gone(worker_id)
        for answer in [a for a in self._answers.values() if a.worker_id == worker_id]:
            answer.fail(
                FailureReason.WORKER_LOST,
                f"The worker {answer.worker_name} went away in the middle of the answer; "
                "ask again.",
            )

    def may_fetch(self, worker_id: int, chat_id: str, key: str) -> bool:
        """True where `key` is a file of the model (or its base) of that worker's running chat."""
        answer = self._answers.get(chat_id)
        if answer is None:
            model = self.broker.model_of(worker_id, chat_id)
            return model is not None and key in _keys(model)
        return answer.worker_id == worker_id and key in _keys(answer.model)

    # --- called by the routes -----------------------------------------------------------------

    async def pick(self, target: Target) -> PromptingWorker:
        """The best connected worker that may answer. Raises 503 `no_worker`."""
        await self.broker.refresh()
        near = [one for one in self.broker.connections() if _may_answer(one, target)]
        able = [one for one in near if one.worker_type in PROMPTING]
        ready = [one for one in able if one.status not in RESTING]
        free = [one for one in ready if self._answering(one) < FULL]
        if not free:
            raise _no_worker(near, able, ready)
        return min(free, key=lambda worker: self._rank(worker, target))

    async def open(
        self,
        target: Target,
        messages: Sequence[dict[str, Any]],
        sampling: Sampling,
        raw_prompt: str | None = None,
    ) -> Answer:
        """Ask the best worker for one answer. Raises 503 `no_worker`.

        The caller reads it with a `Reader` and calls `cancel()` when nobody reads any more.
        """
        worker, model = await self.pick(target), target.model
        answer = Answer(
            secrets.token_hex(12),
            worker.worker_id,
            worker.name,
            model,
            self.limits,
            self._stop,
            self._ended,
            self._loading(worker.worker_id, model),
        )
        self._answers[answer.chat_id] = answer
        self._remember(worker.worker_id, model)
        chat = Chat(
            chat_id=answer.chat_id,
            model=model,
            messages=tuple(messages),
            sampling=sampling,
            raw_prompt=raw_prompt,
        )
        await self._ask(answer, chat)
        return answer

    async def _ask(self, answer: Answer, chat: Chat) -> None:
        try:
            await self.broker.send(answer.worker_id, chat)
        except asyncio.CancelledError:
            answer.cancel()
            raise
        except Exception as error:
            log.warning("chat could not be sent to worker %s: %s", answer.worker_name, error)
            self.worker_gone(answer.worker_id)

    def _rank(self, worker: PromptingWorker, target: Target) -> tuple[Any, ...]:
        answering = self._answering(worker)
        return (
            _nearness(worker, target),
            answering >= CROWDED,
            self._distance(worker.worker_id, target.model),
            worker.status != WorkerStatus.IDLE,
            answering,
            worker.worker_id,
        )

    def _answering(self, worker: PromptingWorker) -> int:
        return sum(answer.worker_id == worker.worker_id for answer in self._answers.values())

    def _distance(self, worker_id: int, model: ModelRef) -> int:
        """0 when its weights are in memory as far as we know, 1 when not."""
        return 0 if _root(model).id in self._loaded.get(worker_id, []) else 1

    def _remember(self, worker_id: int, model: ModelRef) -> None:
        root = _root(model).id
        others = [id for id in self._loaded.get(worker_id, []) if id != root]
        self._loaded[worker_id] = [root, *others][:REMEMBERED_MODELS]

    def _loading(self, worker_id: int, model: ModelRef) -> Loading:
        """What is expected is what it took the last time on that worker."""
        at = (worker_id, _root(model).id)

        def remember(seconds: float) -> None:
            self._seconds.pop(at, None)
            self._seconds[at] = seconds
            while len(self._seconds) > REMEMBERED_SECONDS:
                del self._seconds[next(iter(self._seconds))]

        return Loading(self._seconds.get(at), remember)

    def _stop(self, answer: Answer) -> None:
        self._spawn(self._send_cancel(answer))

    async def _send_cancel(self, answer: Answer) -> None:
        try:
            await self.broker.send(answer.worker_id, ChatCancel(chat_id=answer.chat_id))
        except Exception as error:
            log.info("worker %s could not be told to stop: %s", answer.worker_name, error)

    def _ended(self, answer: Answer) -> None:
        self._answers.pop(answer.chat_id, None)
        self.broker.forget(answer.chat_id)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _may_answer(worker: PromptingWorker, target: Target) -> bool:
    """A worker sees the model and the talk: only the asker's, its project's, the house's."""
    own = worker.project_id in target.projects or worker.user_id == target.user_id
    return own or worker.kind == MANAGED


def _nearness(worker: PromptingWorker, target: Target) -> int:
    """Place of its project among the target's, so that a model stays at home where it can."""
    known = worker.project_id in target.projects
    return target.projects.index(worker.project_id) if known else len(target.projects)


def _root(model: ModelRef) -> ModelRef:
    return model if model.base is None else _root(model.base)


def _keys(model: ModelRef) -> set[str]:
    own = {file.key for file in model.files}
    return own if model.base is None else own | _keys(model.base)


def _no_worker(
    near: Sequence[PromptingWorker],
    able: Sequence[PromptingWorker],
    ready: Sequence[PromptingWorker],
) -> ParsynError:
    if ready:
        detail = f"Every worker is writing {FULL} answers already; try again in a moment."
    elif able:
        detail = "Every worker that could answer is paused or draining. Resume one under Workers."
    elif near:
        detail = (
            "The connected workers only fine-tune. Set one to `both` or `prompter`, or start "
            "another with `parsyn start`."
        )
    else:
        detail = (
            "No worker is connected to answer. Start one with `parsyn start` on a machine "
            "(Workers → Add shows the commands), then ask again."
        )
    return ParsynError(ErrorCode.NO_WORKER, detail, retry_after=5)
