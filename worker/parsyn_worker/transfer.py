"""Bytes between this machine and the storage, each object with a ticket of its own."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from parsyn import crash
from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.refs import FileRef
from parsyn.wire.worker import TaskKey, Ticket, WantTicket
from parsyn_worker.address import HubAddress
from parsyn_worker.cache import CHUNK, Cache, safe_path, sha256_of
from parsyn_worker.tickets import TicketRefused, Tickets

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
TRIES = 5
"""How often a refusal of the hub or the storage is taken for a passing one."""

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


class StaleAttempt(Exception):
    """The storage refused: another attempt owns the task now."""


class GaveUp(Exception):
    """A transfer was refused for good; the text says why."""


@dataclass(frozen=True)
class Scope:
    """On whose behalf an object is asked for."""

    task: TaskKey | None = None
    chat_id: str | None = None

    def want(self, **values: Any) -> WantTicket:
        task = self.task
        return WantTicket(
            request_id="",
            task_id=task.task_id if task else None,
            attempt=task.attempt if task else None,
            chat_id=self.chat_id,
            **values,
        )


class Transfer:
    """Downloads into the cache and uploads out of task folders. One for an agent."""

    def __init__(self, hub: HubAddress, tickets: Tickets, cache: Cache) -> None:
        self.hub, self.tickets, self.cache = hub, tickets, cache
        timeout = httpx.Timeout(30, read=120, write=120, pool=None)
        self.http = httpx.AsyncClient(timeout=timeout, follow_redirects=False)
        self._fetching: dict[str, asyncio.Lock] = {}

    async def close(self) -> None:
        await self.http.aclose()

    # --- down --------------------------------------------------------------------------------

    async def fetch_all(self, files: Sequence[FileRef], scope: Scope, progress: Progress) -> None:
        """Every file is in the cache when this returns."""
        total, done = sum(file.size for file in files), 0
        missing = [file for file in files if await asyncio.to_thread(self.cache.find, file) is None]
        if missing:
            wanted = sum(file.size for file in missing)
            await asyncio.to_thread(self.cache.make_room, wanted)
        for file in files:
            await self.fetch(file, scope, part_of(done, total, progress))
            done += file.size
            progress(done, total)

    async def fetch(
        self, file: FileRef, scope: Scope, progress: Callable[[int], None] = lambda _: None
    ) -> Path:
        """The file's path in the cache; asks the hub only when it is not there.

        Raises ParsynError when the hub or the storage refuses it for good.
        """
        async with self._fetching.setdefault(file.sha256, asyncio.Lock()):
            found = await asyncio.to_thread(self.cache.find, file)
            return found or await self._fetch_alone(file, scope, progress)

    async def _fetch_alone(
        self, file: FileRef, scope: Scope, progress: Callable[[int], None]
    ) -> Path:
        while True:
            with self.cache.alone(file) as mine:
                if mine:
                    await self._download(file, scope, progress)
                    return await asyncio.to_thread(self.cache.adopt, file)
            # Another agent of this machine is at it.
            await asyncio.sleep(0.5)
            if found := self.cache.find(file):
                return found

    async def _download(self, file: FileRef, scope: Scope, progress: Callable[[int], None]) -> None:
        wait = Backoff(f"Download of {file.path}")
        while True:
            try:
                ticket = await self.tickets.get(scope.want(op="get", key=file.key))
                await self._get(ticket, file, progress)
                return
            except (TicketRefused, Refused) as error:
                if not await wait.refused(error):
                    raise ParsynError(
                        ErrorCode.UNAVAILABLE, f"{file.path} cannot be fetched: {error}."
                    ) from None
            except (httpx.TransportError, ConnectionError, TimeoutError) as error:
                await wait.broken(error)

    async def _get(self, ticket: Ticket, file: FileRef, progress: Callable[[int], None]) -> None:
        part = self.cache.part(file)
        have = part.stat().st_size if part.exists() else 0
        if have == file.size:
            part.touch()
            return
        if have > file.size:
            have = 0
        headers = {**ticket.headers, **({"Range": f"bytes={have}-"} if have else {})}
        async with self.http.stream("GET", self._url(ticket), headers=headers) as response:
            if response.status_code == 416:
                part.unlink(missing_ok=True)
            if response.status_code not in (200, 206):
                raise await _refused(response)
            if response.status_code == 200:
                have = 0
            await _receive(response, part, have, file.size, progress)

    # --- up ----------------------------------------------------------------------------------

    async def store(
        self,
        key: TaskKey,
        path: str,
        source: Path,
        progress: Callable[[int], None] = lambda _: None,
    ) -> FileRef:
        """Put `source` at `path` of the task's own folder.

        Waits for hub and network as long as it takes. Raises StaleAttempt, GaveUp, and OSError
        when the file cannot be read.
        """
        size, digest = await asyncio.to_thread(_measure, source)
        want = Scope(task=key).want(op="put", path=safe_path(path), size=size, sha256=digest)
        wait = Backoff(f"Upload of {path}")
        while True:
            try:
                ticket = await self.tickets.get(want)
                crash.point("upload.before")
                await self._put(ticket, source, size, progress)
                crash.point("upload.after")
                return FileRef(path=path, key=ticket.key or path, size=size, sha256=digest)
            except (TicketRefused, Refused) as error:
                if not await wait.refused(error):
                    raise GaveUp(f"{path} cannot be stored: {error}") from None
            except (httpx.TransportError, ConnectionError, TimeoutError) as error:
                await wait.broken(error)

    async def _put(
        self, ticket: Ticket, source: Path, size: int, progress: Callable[[int], None]
    ) -> None:
        response = await self.http.request(
            ticket.method,
            self._url(ticket),
            content=_chunks(source, progress),
            headers={**ticket.headers, "Content-Length": str(size)},
        )
        if response.status_code == 409 and "stale_attempt" in response.text:
            raise StaleAttempt
        if response.status_code not in (200, 201, 204):
            raise await _refused(response)

    def _url(self, ticket: Ticket) -> str:
        try:
            return self.hub.below(ticket.url or "")
        except ValueError as error:
            raise Refused(str(error)) from None


class Refused(Exception):
    """An HTTP answer that is no success; a new ticket may help, a few times."""


class Backoff:
    """Waits with full jitter; counts refusals, but never gives up on a network."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._waits = self._refusals = 0

    async def refused(self, error: Exception) -> bool:
        """False when that was one refusal too many."""
        self._refusals += 1
        if self._refusals >= TRIES:
            return False
        await self.broken(error)
        return True

    async def broken(self, error: Exception) -> None:
        self._waits += 1
        log.info("%s: %s; trying again.", self.what, error or type(error).__name__)
        await asyncio.sleep(random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2**self._waits)))


def _measure(source: Path) -> tuple[int, str]:
    return source.stat().st_size, sha256_of(source)


def part_of(start: int, total: int, progress: Progress) -> Callable[[int], None]:
    """A file's own progress as part of a larger one."""
    return lambda done: progress(start + done, total)


async def _receive(
    response: httpx.Response, part: Path, have: int, size: int, progress: Callable[[int], None]
) -> None:
    with part.open("r+b" if have else "wb") as target:
        target.seek(have)
        async for chunk in response.aiter_bytes(CHUNK):
            have += len(chunk)
            if have > size:
                raise Refused("more bytes came than the file has")
            await asyncio.to_thread(target.write, chunk)
            progress(have)
        target.truncate()
    if have < size:
        raise ConnectionError(f"{size - have} bytes are missing")


async def _chunks(source: Path, progress: Callable[[int], None]) -> AsyncIterator[bytes]:
    sent = 0
    with source.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
            sent += len(chunk)
            progress(sent)


async def _refused(response: httpx.Response) -> Exception:
    """What an answer that is no success means: its problem's words, or only its status."""
    body = (await response.aread())[:2000]
    if response.status_code >= 500 or response.status_code == 429:
        return ConnectionError(f"HTTP {response.status_code}")
    try:
        detail = str(httpx.Response(200, content=body).json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = ""
    return Refused(detail or f"HTTP {response.status_code}")
