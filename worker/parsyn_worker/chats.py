"""Chats on this agent: models are brought to its disk, one long-lived child answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

from pydantic import ValidationError

from parsyn.wire.refs import ModelRef
from parsyn.wire.states import FailureReason, WorkerType
from parsyn.wire.tasks import Failure
from parsyn.wire.worker import Chat, ChatDone, Token
from parsyn_worker.config import AgentConfig
from parsyn_worker.events import CancelOrder, ChatOrder, LoadOrder, UnloadOrder, answers
from parsyn_worker.failures import classify, died
from parsyn_worker.inferer import Inferer
from parsyn_worker.inputs import Inputs
from parsyn_worker.session import Session
from parsyn_worker.transfer import Scope
from parsyn_worker.vram import VramCap

log = logging.getLogger(__name__)

IDLE_SECONDS = 900.0
"""Without a chat for so long, the child and its memory are given back."""
GRACE_SECONDS = 10.0


class Chats:
    """Every chat ends with exactly one `chat_done`, whatever becomes of the child."""

    def __init__(
        self,
        config: AgentConfig,
        device: str,
        vram_cap: VramCap,
        inputs: Inputs,
        session: Session,
    ) -> None:
        self.config, self.inputs, self.session = config, inputs, session
        self._inferer = Inferer(config, device, vram_cap, self._answer, self._died)
        self._open: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, asyncio.Future[ChatDone]] = {}
        self._side_jobs: set[asyncio.Task[Any]] = set()
        self._used = time.monotonic()

    @property
    def open_count(self) -> int:
        return len(self._open)

    async def run(self) -> None:
        """Give the memory back when nobody has chatted for long."""
        while True:
            await asyncio.sleep(30)
            if not self._open and time.monotonic() - self._used > IDLE_SECONDS:
                await self._inferer.close()

    # --- from the hub ------------------------------------------------------------------------

    def start(self, chat: Chat) -> None:
        if chat.chat_id not in self._open:
            task = asyncio.create_task(self._serve(chat, time.time()))
            self._open[chat.chat_id] = task
            task.add_done_callback(lambda _: self._open.pop(chat.chat_id, None))

    def cancel(self, chat_id: str) -> None:
        if chat_id in self._ended and self._inferer.alive:
            self._side(self._inferer.send(CancelOrder(chat_id=chat_id)))
        elif chat_id in self._open:
            self._open[chat_id].cancel()

    def drop_all(self) -> None:
        """Nobody listens any more: the hub is away and tells its users so itself."""
        for chat_id in list(self._open):
            self.cancel(chat_id)

    def load(self, model: ModelRef) -> None:
        self._side(self._load(model))

    def unload(self, model_id: int) -> None:
        if self._inferer.alive:
            self._side(self._inferer.send(UnloadOrder(model_id=model_id)))

    def make_room(self) -> None:
        """A task wants the device's memory: models that answer nothing now are put away."""
        if self._inferer.alive:
            self._side(self._inferer.send(UnloadOrder()))

    def start_anew(self) -> None:
        """The limits have changed: an idle child ends, the next one keeps to them."""
        if self._inferer.alive and not self._open:
            self._side(self._inferer.close())

    async def close(self) -> None:
        tasks = [*self._open.values(), *self._side_jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._inferer.close()

    # --- inside ------------------------------------------------------------------------------

    async def _serve(self, chat: Chat, asked_at: float) -> None:
        try:
            done = await self._generate(chat, asked_at)
        except asyncio.CancelledError:
            done = ChatDone(chat_id=chat.chat_id, finish_reason="cancelled")
        except Exception as error:
            log.warning("A chat failed: %s: %s", type(error).__name__, error)
            done = _failed(chat.chat_id, classify(error))
        self._ended.pop(chat.chat_id, None)
        self._used = time.monotonic()
        await self.session.send(done)

    async def _generate(self, chat: Chat, asked_at: float) -> ChatDone:
        if self.config.worker_type is WorkerType.FINE_TUNER:
            return _failed(chat.chat_id, _NO_CHATS)
        model = await self.inputs.for_chat(
            chat.model, Scope(chat_id=chat.chat_id), self._downloading(chat.chat_id)
        )
        ended = asyncio.get_running_loop().create_future()
        self._ended[chat.chat_id] = ended
        order = ChatOrder(
            chat_id=chat.chat_id,
            asked_at=asked_at,
            model_id=chat.model.id,
            model=model,
            messages=chat.messages,
            sampling=chat.sampling,
            raw_prompt=chat.raw_prompt,
        )
        if not self._inferer.alive:
            await self.session.send(Token(chat_id=chat.chat_id, n=0, phase="loading"))
        await self._inferer.send(order)
        return await self._in_time(chat.chat_id, ended)

    async def _in_time(self, chat_id: str, ended: asyncio.Future[ChatDone]) -> ChatDone:
        try:
            return await asyncio.wait_for(asyncio.shield(ended), self.config.inference_timeout)
        except TimeoutError:
            await self._inferer.send(CancelOrder(chat_id=chat_id))
        try:
            cut = await asyncio.wait_for(ended, GRACE_SECONDS)
        except TimeoutError:
            await self._inferer.close()
            cut = ChatDone(chat_id=chat_id, finish_reason="error")
        return cut.model_copy(update={"finish_reason": "error", "failure": self._too_long()})

    async def _load(self, model: ModelRef) -> None:
        try:
            local = await self.inputs.for_chat(model, Scope(), lambda done, total: None)
            await self._inferer.send(LoadOrder(model_id=model.id, model=local))
        except Exception as error:
            log.warning("%s was not loaded ahead: %s", model.name, error)

    async def _answer(self, line: bytes) -> None:
        try:
            message = answers.validate_json(line)
        except ValidationError:
            log.warning("The inference child sent an unreadable line.")
            return
        if isinstance(message, Token):
            await self.session.send(message)
            return
        ended = self._ended.get(message.chat_id)
        if ended and not ended.done():
            ended.set_result(message)

    def _died(self, status: int, tail: list[str]) -> None:
        for chat_id, ended in self._ended.items():
            if not ended.done():
                ended.set_result(_failed(chat_id, died(status, tail)))

    def _downloading(self, chat_id: str) -> Any:
        last = 0.0

        def progress(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last > 0.5:
                last = time.monotonic()
                token = Token(chat_id=chat_id, n=0, phase="downloading", done=done, total=total)
                self._side(self.session.send(token))

        return progress

    def _too_long(self) -> Failure:
        return Failure(
            reason=FailureReason.TIMEOUT,
            message=f"The answer took longer than {self.config.inference_timeout:g} s.",
            advice="Ask for fewer tokens, or raise INFERENCE_TIMEOUT_SECONDS on the agent.",
        )

    def _side(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(coroutine)
        self._side_jobs.add(task)
        task.add_done_callback(self._side_jobs.discard)


def _failed(chat_id: str, failure: Failure) -> ChatDone:
    return ChatDone(chat_id=chat_id, finish_reason="error", failure=failure)


_NO_CHATS = Failure(
    reason=FailureReason.USER_ERROR,
    message="This agent only fine-tunes (WORKER_TYPE=fine_tuner) and answers no chats.",
)
