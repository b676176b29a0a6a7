"""Uploads in parts: resumable, checked, with flat memory."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Any

from quart import request

from parsyn import crash
from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.hub.hub import hub, principal
from parsyn.hub.routing import Api
from parsyn.hub.streaming import TRANSFERS, take_body
from parsyn.plugin.storage import ObjectInfo
from parsyn.services import uploads
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.wire.api.datasets import PartOut, UploadCompleteIn, UploadIn, UploadOut
from parsyn.wire.states import Scope

api = Api("uploads")


@api.endpoint(
    "POST",
    "/uploads",
    scope=Scope.WRITE,
    body=UploadIn,
    answers=UploadOut,
    status=201,
    idempotent=True,
)
async def create(body: UploadIn) -> dict[str, Any]:
    """Announce a file; the answer says how large its parts are."""
    context = hub().context
    return await context.database.write(uploads.create, context, principal(), body)


@api.endpoint("GET", "/uploads/<int:upload_id>", scope=Scope.READ, answers=UploadOut)
async def get(upload_id: int) -> dict[str, Any]:
    """How far an upload is; an interrupted one goes on with the parts that are missing."""
    return await hub().context.database.read(uploads.get, principal(), upload_id)


@api.endpoint("PUT", "/uploads/<int:upload_id>/parts/<int:n>", scope=Scope.WRITE, answers=PartOut)
async def put_part(upload_id: int, n: int) -> dict[str, Any]:
    """The raw bytes of part `n`, counted from 1; sent again it replaces what was there."""
    context, who = hub().context, principal()
    place = await context.database.read(uploads.part_place, who, upload_id, n)
    stored = await take_body(lambda chunks: context.storage.put(place.key, chunks), place.size)
    crash.point("part.stored")
    try:
        _refuse_wrong_part(stored, place.size)
        part = await context.database.write(uploads.store_part, context, who, upload_id, n, stored)
    except ParsynError:
        await _run(context.storage.delete, stored.key)
        raise
    crash.point("part.recorded")
    return part


@api.endpoint(
    "POST",
    "/uploads/<int:upload_id>/complete",
    scope=Scope.WRITE,
    body=UploadCompleteIn,
    answers=UploadOut,
)
async def complete(upload_id: int, body: UploadCompleteIn) -> dict[str, Any]:
    """Join the parts and check the digest; a second time answers the same."""
    locks: dict[int, asyncio.Lock] = hub().parts.setdefault("joining", {})
    lock = locks.setdefault(upload_id, asyncio.Lock())
    # Goes on when the client goes away, so that what is joined is joined by one.
    joined = asyncio.create_task(
        _complete(hub().context, principal(), upload_id, body.sha256, lock)
    )
    hub().tasks.add(joined)
    joined.add_done_callback(hub().tasks.discard)
    try:
        return await asyncio.shield(joined)
    finally:
        if not lock.locked():
            locks.pop(upload_id, None)


@api.endpoint("DELETE", "/uploads/<int:upload_id>", scope=Scope.WRITE, status=204)
async def abort(upload_id: int) -> None:
    """Abort an upload and forget its parts."""
    context = hub().context
    await context.database.write(uploads.abort, context, principal(), upload_id)


async def _complete(
    context: Context, who: Principal, upload_id: int, sha256: str | None, lock: asyncio.Lock
) -> dict[str, Any]:
    async with lock:
        joining = await context.database.write(uploads.begin_complete, who, upload_id, sha256)
        if joining is None:
            return await context.database.read(uploads.get, who, upload_id)
        crash.point("join.before")
        try:
            stored = await _run(uploads.join, context, joining)
        except ParsynError as error:
            if error.code is ErrorCode.DIGEST_MISMATCH:
                await context.database.write(uploads.reopen, joining)
            raise
        crash.point("join.after")
        return await context.database.write(uploads.finish_complete, who, joining, stored)


async def _run(fn: Any, *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(TRANSFERS, fn, *args)


def _refuse_wrong_part(stored: ObjectInfo, size: int) -> None:
    if stored.size != size:
        raise invalid(
            ["body"], f"This part must have {size:,} bytes, {stored.size:,} came. Send it again."
        )
    promised = _promised_digest()
    if promised is not None and promised != stored.sha256:
        raise ParsynError(
            ErrorCode.DIGEST_MISMATCH,
            f"The part came with the SHA-256 {stored.sha256}, not {promised}. Send it again.",
        )


def _promised_digest() -> str | None:
    """The SHA-256 of a `Content-Digest` header (RFC 9530), as hex."""
    found = re.search(r"sha-256=:([A-Za-z0-9+/=]+):", request.headers.get("Content-Digest", ""))
    try:
        return None if found is None else base64.b64decode(found[1], validate=True).hex()
    except ValueError:
        raise invalid(["Content-Digest"], "The SHA-256 in Content-Digest is not base64.") from None
