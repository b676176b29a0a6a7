"""The agent's end of a child process: its own session, orders in, events and output lines out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Literal

from parsyn_worker.events import EVENTS_FD

LONGEST_EVENT = 32 << 20
LONGEST_LINE = 8192
TAIL = 40

Stream = Literal["stdout", "stderr"]
OnLine = Callable[[Stream, str], None]


class Child:
    """One running `python -m module`. Made by `start`; always ended by `close`."""

    def __init__(
        self, process: asyncio.subprocess.Process, events: asyncio.StreamReader, on_line: OnLine
    ) -> None:
        self.process, self._events, self._on_line = process, events, on_line
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._readers = [
            asyncio.create_task(self._read("stdout", process.stdout)),
            asyncio.create_task(self._read("stderr", process.stderr)),
        ]
        self._reaper = asyncio.create_task(self._reap())

    @classmethod
    async def start(
        cls, module: str, env: Mapping[str, str], on_line: OnLine, cwd: Path | None = None
    ) -> Child:
        read, write = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # the working folder holds files of users; nothing is imported from it
                "-m",
                module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(write,),
                env={**env, EVENTS_FD: str(write)},
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        return cls(process, await _reader(read), on_line)

    async def send(self, line: bytes) -> None:
        """One order. Raises ConnectionError when the child is gone."""
        stdin = self.process.stdin
        if stdin is None or stdin.is_closing():
            raise ConnectionResetError("the child is gone")
        stdin.write(line + b"\n")
        await stdin.drain()

    async def events(self) -> AsyncIterator[bytes]:
        """Lines of the event pipe, until the child (and all that it started) has closed it."""
        while line := await self._events.readline():
            yield line

    def terminate(self) -> None:
        """Ask the child itself to stop; what it started is its to tidy up."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()

    def kill(self) -> None:
        """End the child and all that it started, now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def close(self) -> int:
        """Kill what is left, read the last output; returns the exit status (negative: signal)."""
        if self.process.returncode is None:
            self.kill()
        status = await self._reaper
        if self.process.stdin:
            self.process.stdin.close()
        await asyncio.gather(*self._readers, return_exceptions=True)
        return status

    async def _reap(self) -> int:
        status = await self.process.wait()
        # What the child started would hold the pipes open, and the device's memory.
        self.kill()
        return status

    async def _read(self, stream: Stream, reader: asyncio.StreamReader | None) -> None:
        assert reader is not None
        rest = b""
        while data := await reader.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._line(stream, line)
            rest = rest[-LONGEST_LINE:]
        if rest:
            self._line(stream, rest)

    def _line(self, stream: Stream, raw: bytes) -> None:
        # A progress bar redraws its line; only what stood there last is worth a line.
        text = raw.rstrip(b"\r").rsplit(b"\r", 1)[-1][:LONGEST_LINE].decode("utf-8", "replace")
        text = text.rstrip()
        if not text:
            return
        if stream == "stderr":
            self.tail.append(text)
        self._on_line(stream, text)


async def _reader(fd: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_EVENT)
    # The transport owns and closes the file.
    file = os.fdopen(fd, "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader
