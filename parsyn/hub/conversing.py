"""Answers of conversations while they are written: one at a time each, kept whoever reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.answers import Answer, End
from parsyn.hub.chat import router_of
from parsyn.hub.hub import Hub
from parsyn.services import turns
from parsyn.services.inference import Target
from parsyn.services.principal import Principal
from parsyn.services.signals import ANSWERS, Signal
from parsyn.services.turns import Turn, Written
from parsyn.wire.api.chat import MessageIn
from parsyn.wire.states import FailureReason

STOPPING_SECONDS = 8.0
ELSEWHERE_SECONDS = 2.0


@dataclass
class KeptAnswer:
    """`stored` is the id of the answer's row, or None where nothing was kept."""

    answer: Answer
    stored: asyncio.Task[int | None]


@dataclass
class _Slot:
    answer: Answer | None = None
    freed: asyncio.Event = field(default_factory=asyncio.Event)


class Conversing:
    """Which conversations are being answered by this hub process."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.router = router_of(hub)
        self._slots: dict[int, _Slot] = {}

    async def ask(self, who: Principal, conversation_id: int, body: MessageIn) -> KeptAnswer:
        """Store the question, open its answer, and keep that as far as it comes.

        Raises what the services raise, 503 `no_worker` before anything is stored, and 409 while
        another answer is being written.
        """
        context = self.hub.context
        target = await context.database.read(turns.target, context, who, conversation_id)
        await self.router.pick(target)
        await self._wait_for_stopped(conversation_id)
        with self._slot(conversation_id) as slot:
            turn = await self._turn(who, conversation_id, body, target)
            try:
                slot.answer = await self.router.open(turn.target, turn.messages, turn.sampling)
            except BaseException:
                await asyncio.shield(context.database.write(turns.release, conversation_id))
                raise
            keeping = self.hub.spawn(self._keep(slot, turn, slot.answer), "keep an answer")
        return KeptAnswer(slot.answer, keeping)

    async def _turn(
        self, who: Principal, conversation_id: int, body: MessageIn, target: Target
    ) -> Turn:
        """Another hub process may just be storing an answer that was stopped: wait a moment."""
        context = self.hub.context
        until = time.monotonic() + ELSEWHERE_SECONDS
        while True:
            try:
                return await context.database.write(
                    turns.ask, who, conversation_id, body, target, context.bus.origin
                )
            except ParsynError as error:
                if error.code is not ErrorCode.CONFLICT or time.monotonic() > until:
                    raise
            await asyncio.sleep(ELSEWHERE_SECONDS / 10)

    def stop(self, conversation_id: int) -> None:
        """Stop the answer that is being written there, if one is, in whichever hub process."""
        if not self.stop_here(conversation_id):
            data = {"conversation_id": conversation_id}
            self.hub.context.bus.publish(Signal.STOP_ANSWER, ANSWERS, data)

    def stop_here(self, conversation_id: int) -> bool:
        """False where this process writes none there."""
        slot = self._slots.get(conversation_id)
        if slot is None or slot.answer is None:
            return False
        slot.answer.cancel()
        return True

    async def _wait_for_stopped(self, conversation_id: int) -> None:
        slot = self._slots.get(conversation_id)
        if slot is not None and slot.answer is not None and slot.answer.cancelled:
            try:
                async with asyncio.timeout(STOPPING_SECONDS):
                    await slot.freed.wait()
            except TimeoutError:
                pass

    @contextmanager
    def _slot(self, conversation_id: int) -> Iterator[_Slot]:
        """Taken here, freed when the answer is stored; at once where none was opened."""
        if conversation_id in self._slots:
            raise turns.still_answering()
        slot = self._slots[conversation_id] = _Slot()
        try:
            yield slot
        except BaseException:
            self._free(slot)
            raise

    def _free(self, slot: _Slot) -> None:
        self._slots = {id: other for id, other in self._slots.items() if other is not slot}
        slot.freed.set()

    async def _keep(self, slot: _Slot, turn: Turn, answer: Answer) -> int | None:
        try:
            await answer.ended()
        except asyncio.CancelledError:
            answer.fail(FailureReason.CANCELLED, "The hub stops; ask again in a moment.")
        try:
            # A hub that stops cancels again and again; what is under way is written even so.
            writing = self.hub.context.database.write(turns.keep, turn, _written(answer))
            return await asyncio.shield(writing)
        finally:
            self._free(slot)


def conversing(hub: Hub) -> Conversing:
    """The one of a hub process, made at the first call."""
    if "conversing" not in hub.parts:
        hub.parts["conversing"] = Conversing(hub)
    return cast("Conversing", hub.parts["conversing"])


def _written(answer: Answer) -> Written:
    end = answer.end or End(FailureReason.INTERNAL)
    return Written(
        answer.text, end.finish_reason, answer.worker_name, usage=end.usage, timings=end.timings
    )
