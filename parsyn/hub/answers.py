"""One answer while a worker writes it: what came so far, who reads it, when it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    error: ParsynError | None = None


AnswerEvent = PhaseEvent | Piece | End


@dataclass(frozen=True)
class Place:
    """How far a reader is."""

    phase: PhaseEvent | None = None
    pieces: int = 0


class Reader:
    """Reads one or several answers in the order in which things come."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = answers
        self._places = [Place() for _ in answers]
        self._open = list(range(len(answers)))
        self._woken = asyncio.Event()
        for answer in answers:
            answer.listen(self._woken)

    @property
    def at_end(self) -> bool:
        """True once every answer's End was read."""
        return not self._open

    async def next(self, seconds: float) -> tuple[int, AnswerEvent] | None:
        """(which answer, what), or None when nothing came for so long."""
        while True:
            self._woken.clear()
            found = self._take()
            if found is not None:
                return found
            try:
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            except TimeoutError:
                return None

    def _take(self) -> tuple[int, AnswerEvent] | None:
        for index in self._open:
            event, self._places[index] = self._answers[index].after(self._places[index])
            if event is not None:
                # The next turn begins with the others, so that none has to wait for one.
                self._open.remove(index)
                if not isinstance(event, End):
                    self._open.append(index)
                return index, event
        return None


@dataclass
class Loading:
    """How long a worker's loading of a model is expected to take, and how long it takes.

    `took` is told the seconds once it is over.
    """

    seconds: float | None = None
    took: Callable[[float], None] | None = None
    since: float | None = None

    def see(self, phase: str, at: float) -> None:
        if phase == "loading":
            self.since = self.since if self.since is not None else at
        elif phase == "generating" and self.since is not None:
            if self.took is not None:
                self.took(at - self.since)
            self.since = None


class Answer:
    """Lives on the event loop. Text is kept whole, so that readers may come late and be slow."""

    def __init__(
        self,
        chat_id: str,
        worker_id: int,
        worker_name: str,
        model: ModelRef,
        limits: Limits,
        stop_worker: Callable[[Answer], None],
        ended: Callable[[Answer], None],
        loading: Loading | None = None,
    ) -> None:
        self.chat_id = chat_id
        self.worker_id = worker_id
        self.worker_name = worker_name
        self.model = model
        self.end: End | None = None
        self.cancelled = False
        self._finished = asyncio.Event()
        self._limits = limits
        self._stop_worker = stop_worker
        self._ended = ended
        self._loading = loading or Loading()
        self._pieces: list[str] = []
        self._characters = 0
        self._phase = PhaseEvent(phase="waiting", worker_name=worker_name)
        self._listeners: list[asyncio.Event] = []
        self._loop = asyncio.get_running_loop()
        self._started = self._heard = self._read = self._loop.time()
        self._timer = self._loop.call_later(self._due(), self._watch)

    def listen(self, listener: asyncio.Event) -> None:
        """Set `listener` whenever something comes."""
        self._listeners.append(listener)

    def after(self, place: Place) -> tuple[AnswerEvent | None, Place]:
        """What a reader at `place` gets next (None: nothing yet), and its new place.

        Pieces that wait are handed over as one.
        """
        self._read = self._loop.time()
        if place.phase is not self._phase:
            return self._phase, replace(place, phase=self._phase)
        if place.pieces < len(self._pieces):
            waiting = self._pieces[place.pieces :]
            return Piece("".join(waiting)), replace(place, pieces=len(self._pieces))
        return self.end, place

    @property
    def text(self) -> str:
        """Everything that came so far."""
        return "".join(self._pieces)

    async def ended(self) -> End:
        """Wait for the End; whoever waits is a reader who keeps up."""
        await self._finished.wait()
        assert self.end is not None
        return self.end

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
            phase = PhaseEvent(
                phase=token.phase,
                done=token.done,
                total=token.total,
                worker_name=self.worker_name,
                about_seconds=self._loading.seconds if token.phase == "loading" else None,
            )
            self._loading.see(token.phase, self._heard)
            self._phase = self._phase if phase == self._phase else phase
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
            self._finished.set()
            self._ended(self)
            self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener.set()

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
