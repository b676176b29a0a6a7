"""The child that chats: `python -m parsyn_worker.infer`, orders on stdin, tokens on a pipe.

One thread reads orders, the main thread makes answers: several at a time, in turns.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from parsyn.wire.worker import ChatDone, Token
from parsyn_worker.channel import Channel, kill_own_group
from parsyn_worker.events import (
    CancelOrder,
    ChatOrder,
    InferOrder,
    InferSettings,
    LoadOrder,
    UnloadOrder,
    infer_orders,
)
from parsyn_worker.failures import classify
from parsyn_worker.generation import Generation
from parsyn_worker.shelf import Base, Shelf
from parsyn_worker.vram import keep_to_cap

TURN = 4
"""Tokens that one answer gets before the next one's turn."""


@dataclass
class Running:
    """An answer that is being made."""

    order: ChatOrder
    base: Base
    generation: Generation
    pieces: Iterator[str] = field(init=False)
    sent: int = 0

    def __post_init__(self) -> None:
        self.pieces = self.generation.pieces()


class Desk:
    """Takes orders, makes answers in turns, and says how each one ended."""

    def __init__(self, channel: Channel, settings: InferSettings) -> None:
        self.channel, self.shelf = channel, Shelf(settings)
        self.orders: queue.SimpleQueue[InferOrder] = queue.SimpleQueue()
        self.running: deque[Running] = deque()

    def serve(self) -> None:
        while True:
            self._take_orders(wait=not self.running)
            if self.running:
                running = self.running.popleft()
                if self._advance(running):
                    self.running.append(running)

    def _take_orders(self, wait: bool) -> None:
        with suppress(queue.Empty):
            while True:
                self._obey(self.orders.get(block=wait))
                wait = False

    def _obey(self, order: InferOrder) -> None:
        if isinstance(order, ChatOrder):
            self._begin(order)
        elif isinstance(order, CancelOrder):
            for running in [r for r in self.running if r.order.chat_id == order.chat_id]:
                self.running.remove(running)
                self._end(running, "cancelled")
        elif isinstance(order, LoadOrder):
            self._load(order)
        elif isinstance(order, UnloadOrder):
            self.shelf.unload(order.model_id)

    def _load(self, order: LoadOrder) -> None:
        try:
            self.shelf.base(order.model, order.model_id)
        except Exception:
            traceback.print_exc(file=sys.stderr)

    def _begin(self, order: ChatOrder) -> None:
        try:
            if not self.shelf.holds(order.model):
                self.channel.emit(Token(chat_id=order.chat_id, n=0, phase="loading"))
            base = self.shelf.base(order.model, order.model_id)
            generation = Generation(order, self.shelf, base, time.time())
        except Exception as error:
            self._fail(order, error)
            return
        base.users[order.model.adapter] += 1
        self.channel.emit(Token(chat_id=order.chat_id, n=0, phase="generating"))
        self.running.append(Running(order, base, generation))

    def _advance(self, running: Running) -> bool:
        """One turn; False when the answer is over."""
        try:
            for _ in range(TURN):
                text = next(running.pieces)
                if text:
                    running.sent += 1
                    self.channel.emit(
                        Token(chat_id=running.order.chat_id, n=running.sent, text=text)
                    )
                if not self.orders.empty():
                    break
        except StopIteration:
            self._end(running, running.generation.finish)
            return False
        except Exception as error:
            running.base.users[running.order.model.adapter] -= 1
            self._fail(running.order, error)
            return False
        return True

    def _end(self, running: Running, reason: str) -> None:
        running.base.users[running.order.model.adapter] -= 1
        self.channel.emit(
            ChatDone(
                chat_id=running.order.chat_id,
                finish_reason=reason,  # type: ignore[arg-type]
                usage=running.generation.usage(),
                timings=running.generation.timings(),
            )
        )

    def _fail(self, order: ChatOrder, error: Exception) -> None:
        failure = classify(error)
        if failure.reason in ("internal", "out_of_memory"):
            traceback.print_exception(error, file=sys.stderr)
            # Memory that a failed answer held is wanted back before the next one.
            self.shelf.unload(None)
        self.channel.emit(ChatDone(chat_id=order.chat_id, finish_reason="error", failure=failure))


def main() -> int:
    channel = Channel()
    lines = channel.orders()
    settings = InferSettings.model_validate_json(next(lines))
    keep_to_cap(settings.device)
    desk = Desk(channel, settings)
    threading.Thread(target=_read, args=(lines, desk), daemon=True).start()
    desk.serve()
    return 0


def _read(lines: Iterator[bytes], desk: Desk) -> None:
    for line in lines:
        desk.orders.put(infer_orders.validate_json(line))
    kill_own_group()


if __name__ == "__main__":
    sys.exit(main())
