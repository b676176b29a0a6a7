"""Server-Sent Events out of answers that workers write."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from quart import Response

from parsyn.hub.answers import Answer, AnswerEvent, Reader

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"
# Ends of lines for some clients, though not for the standard.
LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
Frames = AsyncGenerator[bytes, None]


def frame(data: Any, event: str | None = None) -> bytes:
    """One event; `data` is sent as JSON on one line, text as it is."""
    text = data if isinstance(data, str) else _json(data)
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {text}\n\n".encode()


def _json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if text.isascii() else text.translate(LINE_ENDS)


async def frames(
    answers: list[Answer], render: Callable[[int, AnswerEvent], bytes | None]
) -> Frames:
    """What `render` makes of every event, with comments while nothing comes."""
    reader = Reader(*answers)
    while not reader.at_end:
        found = await reader.next(KEEP_ALIVE_SECONDS)
        rendered = KEEP_ALIVE if found is None else render(*found)
        if rendered is not None:
            yield rendered


class Body:
    """Stops the answers when nobody reads them any more, even if nobody ever did."""

    def __init__(self, source: Frames, answers: list[Answer]) -> None:
        self._source = source
        self._answers = answers

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        return await self._source.__anext__()

    async def aclose(self) -> None:
        for answer in self._answers:
            answer.cancel()
        await self._source.aclose()


def stream(source: Frames, answers: list[Answer]) -> Response:
    """The response of a stream without a time limit of its own; the answers have theirs."""
    response = Response(Body(source, answers), content_type="text/event-stream; charset=utf-8")
    response.timeout = None
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response
