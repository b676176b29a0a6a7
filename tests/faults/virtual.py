"""Processes on one thread and a clock that jumps: hours of leases in a fraction of a second.

A `Process` is whatever runs in its context: it can be killed (nothing of it ever runs again, no
`finally` either), stopped and continued. What the product hands to threads runs here in turn, a
random moment later, so that a seed decides in which order things happen.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

EPOCH = 1_800_000_000.0
LATENCY = 0.003
"""Seconds that a call on another thread takes at most."""


class Killed(BaseException):
    """The simulated process ended here."""


class Idle(Exception):
    """Nothing would ever happen any more."""


@dataclass(eq=False)
class Process:
    """`skew` is how far its wall clock is off. `on_death` is what its system does for it then."""

    name: str
    alive: bool = True
    stopped: bool = False
    skew: float = 0.0
    on_death: list[Callable[[], None]] = field(default_factory=list)
    held: list[Callable[[], None]] = field(default_factory=list)
    points: dict[str, int] = field(default_factory=dict)

    def context(self) -> contextvars.Context:
        made = contextvars.copy_context()
        made.run(CURRENT.set, self)
        return made

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            self.held.clear()
            for act in self.on_death:
                act()

    def stop(self) -> None:
        self.stopped = True

    def go_on(self) -> None:
        self.stopped = False
        held, self.held = self.held, []
        for act in held:
            act()

    def pass_point(self, name: str) -> None:
        """A crash point: dies at the passage that `points` counts down to."""
        left = self.points.get(name)
        if left is None:
            return
        self.points[name] = left - 1
        if left <= 1:
            del self.points[name]
            self.kill()
            raise Killed(name)


CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class _Waitless(selectors.SelectSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Idle
        self.loop.advance(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing is left to do."""

    def __init__(self, seed: int) -> None:
        self._moment = 1000.0
        self._luck = random.Random(seed)
        self._lines: dict[int, float] = {}
        self._kept: list[asyncio.Task[Any]] = []
        selector = _Waitless()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self._moment

    def advance(self, seconds: float) -> None:
        self._moment += max(0.0, seconds)

    def _write_to_self(self) -> None:
        """There is no other thread that would have to wake this one."""

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        context = context or contextvars.copy_context()
        return super().call_soon(self._gate, callback, args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        context = context or contextvars.copy_context()
        return super().call_at(when, self._gate, callback, args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_soon(callback, *args, context=context)

    def _gate(self, callback: Any, args: tuple[Any, ...]) -> None:
        process = CURRENT.get()
        if process is None:
            callback(*args)
        elif not process.alive:
            return
        elif process.stopped:
            context = contextvars.copy_context()
            process.held.append(lambda: self.call_soon(callback, *args, context=context))
        else:
            with suppress(Killed):
                callback(*args)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """In its turn among the calls of the same executor, a moment later."""
        done = self.create_future()
        line = id(executor)
        when = max(self.time() + self._luck.uniform(0, LATENCY), self._lines.get(line, 0.0))
        self._lines[line] = when
        self.call_at(when, self._carry_out, done, func, args)
        return done

    def _carry_out(self, done: asyncio.Future[Any], func: Any, args: tuple[Any, ...]) -> None:
        if done.cancelled():
            return
        try:
            result = func(*args)
        except Exception as error:
            self.call_later(self._luck.uniform(0, LATENCY), _settle, done, None, error)
        else:
            self.call_later(self._luck.uniform(0, LATENCY), _settle, done, result, None)

    def create_task(self, work: Any, **options: Any) -> Any:
        """Kept to the end: what a collector closes in between would run its `finally`."""
        task = super().create_task(work, **options)
        self._kept.append(task)
        if len(self._kept) > 20_000:
            self._kept = [task for task in self._kept if not task.done()]
        return task

    def begin(self, process: Process | None, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task of a process."""
        context = process.context() if process else None
        return self.create_task(work, context=context)


def _settle(done: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)


class VirtualTime:
    """Stands for the module `time` in the product."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def time(self) -> float:
        process = CURRENT.get()
        return EPOCH + self._loop.time() + (process.skew if process else 0.0)

    def time_ns(self) -> int:
        return int(self.time() * 1e9)

    def monotonic(self) -> float:
        return self._loop.time()

    def monotonic_ns(self) -> int:
        return int(self._loop.time() * 1e9)

    perf_counter = monotonic

    def clock_gettime(self, _: int) -> float:
        return self._loop.time()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class InlineThread:
    """Stands for an executor that the product makes: `submit` is done at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, func: Callable[..., Any], *args: Any) -> InlineThread:
        self.value = func(*args)
        return self

    def result(self) -> Any:
        return self.value

    def shutdown(self, *_: Any, **__: Any) -> None:
        pass


@contextmanager
def virtual_loop(seed: int) -> Iterator[VirtualLoop]:
    """A loop of its own, closed with all that was left behind in it."""
    loop = VirtualLoop(seed)
    loop.set_exception_handler(lambda *_: None)
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        for task in asyncio.all_tasks(loop):
            _bury(task)
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


def _bury(task: asyncio.Task[Any]) -> None:
    """A task of a dead process will not be cancelled, so its frames are closed one by one."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    work: Any = task.get_coro()
    for _ in range(20):
        try:
            work.close()
            return
        except BaseException:  # whatever its `finally` does comes too late
            continue
