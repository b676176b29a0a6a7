"""Bytes of tasks and chats, to and from agents that hold a signed ticket."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

from quart import Response, request

from parsyn import crash
from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub import streaming
from parsyn.hub.hub import hub
from parsyn.hub.routing import Api
from parsyn.services import tickets
from parsyn.services.context import Context
from parsyn.services.tickets import Grant
from parsyn.wire.refs import FileRef

api = Api("storage", prefix="")


@api.endpoint("GET", "/storage/<ticket>", scope=None, ticket=True)
async def fetch(ticket: str) -> Response:
    """The object that the ticket names; `Range` is honoured."""
    context = hub().context
    grant = tickets.read(context, ticket, "get")
    info = await asyncio.to_thread(context.storage.stat, grant.key)
    name = grant.key.rsplit("/", 1)[-1]
    return streaming.send_object(
        context.storage,
        grant.key,
        info.size,
        mimetype="application/octet-stream",
        filename=name,
        etag=info.sha256 or f"{info.size}",
    )


@api.endpoint("PUT", "/storage/<ticket>", scope=None, ticket=True, answers=FileRef, status=201)
async def store(ticket: str) -> dict[str, Any]:
    """Store the body as the object that the ticket names, if size and SHA-256 are as promised."""
    context = hub().context
    grant = tickets.read(context, ticket, "put")
    if request.content_length is None:
        raise ParsynError(ErrorCode.MALFORMED, "Say the Content-Length of what you store.")
    if request.content_length != grant.size:
        raise ParsynError(
            ErrorCode.MALFORMED,
            f"The ticket is for {grant.size:,} bytes, not for {request.content_length:,}.",
        )
    known = await context.database.read(tickets.require_current, grant)
    if known is not None:
        await streaming.take_body(_discard, grant.size)
    else:
        crash.point("object.before")
        await streaming.take_body(
            lambda chunks: context.storage.put(grant.key, _checked(grant, chunks)), grant.size
        )
        crash.point("object.stored")
        await _record(context, grant)
        crash.point("object.recorded")
    return {"path": grant.path, "key": grant.key, "size": grant.size, "sha256": grant.sha256}


def _discard(chunks: Iterator[bytes]) -> None:
    """It is stored already, but a sender wants to be heard out."""
    for _ in chunks:
        pass


def _checked(grant: Grant, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks; raises 409 at their end, before they become an object, if they are not those."""
    size, digest = 0, hashlib.sha256()
    for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
        yield chunk
    if size != grant.size or digest.hexdigest() != grant.sha256:
        raise ParsynError(
            ErrorCode.DIGEST_MISMATCH,
            f"{grant.path} arrived with another size or SHA-256 than announced; send it again.",
        )


async def _record(context: Context, grant: Grant) -> None:
    try:
        await context.database.write(tickets.record, grant)
    except ParsynError as error:
        if error.code is ErrorCode.STALE_ATTEMPT:
            # The task changed hands during the upload; nothing will ever name this object.
            await asyncio.to_thread(context.storage.delete, grant.key)
        raise
