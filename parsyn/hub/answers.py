"""One answer while a worker writes it: what came so far, who reads it, when it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.api.chat import PhaseEvent
from parsyn.wire.refs import ModelRef
from parsyn.wire.states import FailureReason
from parsyn.wire.worker import ChatDone, Timings, Token, Usage

MAX_CHARACTERS = 2_000_000
CODE_OF = {
    FailureReason.USER_ERROR: ErrorCode.VALIDATION_FAILED,
    FailureReason.BAD_DATA: ErrorCode.BAD_DATA,
    FailureReason.MODEL_UNAVAILABLE: ErrorCode.MODEL_UNAVAILABLE,
    FailureReason.OUT_OF_MEMORY: ErrorCode.UNAVAILABLE,
    FailureReason.DISK_FULL: ErrorCode.UNAVAILABLE,
    FailureReason.WORKER_LOST: ErrorCode.UNAVAILABLE,
    FailureReason.TIMEOUT: ErrorCode.TIMEOUT,
    FailureReason.CANCELLED: ErrorCode.UNAVAILABLE,
}


@dataclass(frozen=True)
class Limits:
    """Seconds: of a worker's silence, of a whole answer, of a reader who takes nothing, and how
    long a cancelled worker has to say so."""

    silence: float = 300.0
    answer: float = 1800.0
    reader: float = 60.0
    cancel: float = 5.0


@dataclass(frozen=True)
class Piece:
    """Text since the last one; several tokens at once where the reader is slower than the model."""

    text: str


@dataclass(frozen=True)
class End:
    """The last event: how it ended, and the error where it did not end well.

    `finish_reason` is `stop`, `length` or `cancelled`, else a FailureReason.
    """

    finish_reason: str
    usage: Usage = Usage()
    timings: Timings = Timings()
    error: ParsynError | None = None


AnswerEvent = PhaseEvent | Piece | End


class Answer:
    """Lives on the event loop. Text is kept whole, so readers may come late and be slow."""

    def __init__(
        self,
        chat_id: str,
        worker_id: int,
        worker_name: str,
        model: ModelRef,
        limits: Limits,
        stop_worker: Callable[[Answer], None],
        ended: Callable[[Answer], None],
    ) -> None:
        self.chat_id = chat_id
        self.worker_id = worker_id
        self.worker_name = worker_name
        self.model = model
        self.end: End | None = None
        self.cancelled = False
        self.finished = asyncio.Event()
        self._limits = limits
        self._stop_worker = stop_worker
        self._ended = ended
        self._pieces: list[str] = []
        self._characters = 0
        self._phase = PhaseEvent(phase="waiting", worker_name=worker_name)
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._started = self._heard = self._read = self._loop.time()
        self._timer = self._loop.call_later(self._due(), self._watch)

    @property
    def text(self) -> str:
        """Everything that came so far."""
        return "".join(self._pieces)

    async def events(self) -> AsyncIterator[AnswerEvent]:
        """Phases, pieces and at last the End; pieces that wait are handed over as one."""
        taken, shown = 0, None
        while True:
            changed = self._changed
            self._read = self._loop.time()
            if self._phase is not shown:
                shown = self._phase
                yield shown
            elif taken < len(self._pieces):
                waiting = self._pieces[taken:]
                taken = len(self._pieces)
                yield Piece("".join(waiting))
            elif self.end is not None:
                yield self.end
                return
            else:
                await changed.wait()

    def take(self, message: Token | ChatDone) -> None:
        """What the worker sent."""
        if self.end is not None:
            return
        self._heard = self._loop.time()
        if isinstance(message, ChatDone):
            self._finish(_end_of(message))
        else:
            self._take_token(message)

    def _take_token(self, token: Token) -> None:
        if token.phase is not None:
            self._phase = PhaseEvent(
                phase=token.phase,
                done=token.done,
                total=token.total,
                worker_name=self.worker_name,
            )
        if token.text:
            self._pieces.append(token.text)
            self._characters += len(token.text)
        if self._characters > MAX_CHARACTERS:
            self._give_up("The worker sent more text than an answer may have.")
        elif self._heard - self._read > self._limits.reader:
            self.cancel()
        self._notify()

    def cancel(self) -> None:
        """Stop the worker; the End comes with its last word, or after a short while without."""
        if self.end is not None or self.cancelled:
            return
        self.cancelled = True
        self._stop_worker(self)
        self._timer.cancel()
        self._timer = self._loop.call_later(
            self._limits.cancel, lambda: self._finish(End("cancelled"))
        )

    def fail(self, reason: FailureReason, detail: str) -> None:
        """End it from the hub's side, with a sentence for the reader."""
        error = ParsynError(CODE_OF.get(reason, ErrorCode.INTERNAL), detail)
        self._finish(End("cancelled") if self.cancelled else End(reason, error=error))

    def _finish(self, end: End) -> None:
        if self.end is None:
            self.end = end
            self._timer.cancel()
            self.finished.set()
            self._ended(self)
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _due(self) -> float:
        """Seconds until the nearest limit is reached, if nothing comes until then."""
        at = min(self._heard + self._limits.silence, self._started + self._limits.answer)
        return at - self._loop.time()

    def _watch(self) -> None:
        if self._due() > 0:
            self._timer = self._loop.call_later(self._due(), self._watch)
        else:
            self._give_up(f"The worker {self.worker_name} took too long; try again.")

    def _give_up(self, detail: str) -> None:
        self._stop_worker(self)
        self.fail(FailureReason.TIMEOUT, detail)


def _end_of(done: ChatDone) -> End:
    if done.finish_reason != "error":
        return End(done.finish_reason, done.usage, done.timings)
    if done.failure is None:
        error = ParsynError(ErrorCode.INTERNAL, "The worker failed without saying why.")
        return End(FailureReason.INTERNAL, done.usage, done.timings, error)
    said = " ".join(filter(None, (done.failure.message, done.failure.advice)))
    code = CODE_OF.get(done.failure.reason, ErrorCode.INTERNAL)
    return End(done.failure.reason, done.usage, done.timings, ParsynError(code, said))
