"""Large bodies between clients and the storage, with memory that does not grow with their size.

Quart's own receiver takes a body as fast as it comes. For PUT, whose bodies are raw bytes in this
API, it waits here until what came was taken.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

from hypercorn.typing import ASGIReceiveCallable
from quart import Quart, Request, Response, request
from quart.asgi import ASGIHTTPConnection
from quart.wrappers.request import Body

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.storage import Storage

R = TypeVar("R")
HIGH_WATER = 1 << 20
SILENCE_SECONDS = 60.0
# Each transfer holds a thread for as long as its sender takes; the rest of the hub has its own.
TRANSFERS = concurrent.futures.ThreadPoolExecutor(32, thread_name_prefix="transfer")


class PacedBody(Body):
    """A body that says when it holds enough for now."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, None)
        self._whole_limit = max_content_length
        self._room = asyncio.Event()
        self._room.set()

    def append(self, data: bytes) -> None:
        super().append(data)
        if len(self._data) >= HIGH_WATER and self._max_content_length is None:
            self._room.clear()

    def __await__(self) -> Generator[Any, None, Any]:
        # Someone wants it whole after all: then the application's own limit holds.
        self._max_content_length = self._whole_limit
        self._room.set()
        return super().__await__()

    async def __anext__(self) -> bytes:
        data = await super().__anext__()
        self._room.set()
        return data

    async def has_room(self) -> None:
        await self._room.wait()


class PacedRequest(Request):
    """A PUT has no limit of its own here: whoever takes its body knows how long it may be."""

    def __init__(self, method: str, *args: Any, **options: Any) -> None:
        if method == "PUT":
            self.body_class = PacedBody
        super().__init__(method, *args, **options)


class PacedConnection(ASGIHTTPConnection):
    async def handle_messages(self, request: Request, receive: ASGIReceiveCallable) -> None:
        while True:
            message = await receive()
            if message["type"] == "http.request":
                request.body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    request.body.set_complete()
                elif isinstance(request.body, PacedBody):
                    await request.body.has_room()
            elif message["type"] == "http.disconnect":
                return


def mount(app: Quart) -> None:
    """Let this application take large PUT bodies."""
    app.request_class = PacedRequest
    app.asgi_http_class = PacedConnection


async def take_body(
    consume: Callable[[Iterator[bytes]], R], limit: int, silence: float | None = None
) -> R:
    """Run `consume` on a thread with the body of the current request, chunk by chunk.

    Raises 413 beyond `limit` bytes and `timeout` when the sender is silent; `consume` is then
    interrupted by the same error, and by another when the client is gone.
    """
    length = request.content_length
    if length is not None and length > limit:
        raise _too_large(limit)
    source = _Source(request.body, limit, silence or SILENCE_SECONDS)
    loop = asyncio.get_running_loop()
    try:
        return await loop.run_in_executor(TRANSFERS, consume, source.chunks(loop))
    finally:
        source.stop()


class _Source:
    """Pulls the chunks of a body from the event loop into a thread."""

    def __init__(self, body: Body, limit: int, silence: float) -> None:
        self._body = body
        self._limit = limit
        self._silence = silence
        self._stopped = False
        self._waiting: concurrent.futures.Future[bytes | None] | None = None

    def chunks(self, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
        seen = 0
        while True:
            self._waiting = asyncio.run_coroutine_threadsafe(self._next(), loop)
            chunk = self._result(self._waiting)
            if chunk is None:
                return
            seen += len(chunk)
            if seen > self._limit:
                raise _too_large(self._limit)
            yield chunk

    def _result(self, waiting: concurrent.futures.Future[bytes | None]) -> bytes | None:
        if self._stopped:
            waiting.cancel()
        try:
            return waiting.result(self._silence)
        except concurrent.futures.CancelledError:
            raise ParsynError(ErrorCode.MALFORMED, "The client went away.") from None
        except TimeoutError:
            waiting.cancel()
            raise ParsynError(
                ErrorCode.TIMEOUT, f"Nothing came for {self._silence:.0f} s; send it again."
            ) from None

    async def _next(self) -> bytes | None:
        return await anext(aiter(self._body), None)

    def stop(self) -> None:
        self._stopped = True
        if self._waiting is not None:
            self._waiting.cancel()


def _too_large(limit: int) -> ParsynError:
    return ParsynError(
        ErrorCode.TOO_LARGE, f"The body is longer than the {limit:,} bytes it may be."
    )


def send_object(
    storage: Storage, key: str, size: int, *, mimetype: str, filename: str, etag: str
) -> Response:
    """A stored object as a download; `Range` is honoured (one range), memory stays flat."""
    span = _asked_range(size, etag)
    start, end = span or (0, size)
    response = Response(
        storage.get(key, start, end - start), status=206 if span else 200, mimetype=mimetype
    )
    response.timeout = None
    response.headers["Content-Length"] = str(end - start)
    response.headers["Accept-Ranges"] = "bytes"
    response.set_etag(etag)
    response.headers.set("Content-Disposition", "attachment", filename=ascii_name(filename))
    if span:
        response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return response


def ascii_name(filename: str) -> str:
    """A file name that is safe in a header and on any disk."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in filename)
    return kept.strip(" .") or "download"


def _asked_range(size: int, etag: str) -> tuple[int, int] | None:
    """(start, end) of the one range that was asked for. Raises 416 where there is nothing in it."""
    asked = request.range
    if asked is None or asked.units != "bytes" or len(asked.ranges) != 1:
        return None
    if request.if_range.etag is not None and request.if_range.etag != etag:
        return None
    span = asked.range_for_length(size)
    if span is None:
        raise ParsynError(
            ErrorCode.RANGE_NOT_SATISFIABLE, f"The file has {size:,} bytes; none are in that range."
        )
    return span
