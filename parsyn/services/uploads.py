"""Uploads in parts: received in any order, each checked, joined once, forgotten when stale."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from parsyn.clock import now
from parsyn.errors import ErrorCode, FieldError, ParsynError, invalid, not_found
from parsyn.plugin.storage import ObjectInfo
from parsyn.services import outbox
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for
from parsyn.store.datasets import Dataset
from parsyn.store.models import ModelFile
from parsyn.store.projects import visible
from parsyn.store.uploads import Upload, UploadPart
from parsyn.wire.api.datasets import UploadIn
from parsyn.wire.states import ProjectRole

KEPT_SECONDS = 24 * 3600
FORGOTTEN_SECONDS = 7 * 86_400
MOST_NAMED = 20
OPEN, JOINING, COMPLETE, ABORTED = "open", "joining", "complete", "aborted"


@dataclass(frozen=True)
class PartPlace:
    """Where a part is to be stored, and how many bytes it must have."""

    key: str
    size: int


@dataclass(frozen=True)
class Joining:
    """What is to be joined: the parts' keys in order, the target, and what must come out."""

    upload_id: int
    keys: tuple[str, ...]
    target: str
    size: int
    sha256: str | None


def create(context: Context, who: Principal, body: UploadIn) -> dict[str, Any]:
    """A new upload of the user's own. Raises 413 above the largest size."""
    most = context.settings.integer("storage.max_upload_bytes")
    if body.size > most:
        raise ParsynError(
            ErrorCode.TOO_LARGE, f"The file has {body.size:,} bytes; at most {most:,} are taken."
        )
    row = Upload.create(
        user=who.user_id,
        project=project_for(who, None),
        filename=plain_filename(body.filename),
        size=body.size,
        purpose=body.purpose,
        part_size=context.settings.integer("storage.part_bytes"),
        sha256=body.sha256,
        key=f"uploads/{secrets.token_hex(12)}/file",
        expires_at=now() + KEPT_SECONDS,
    )
    return as_out(row)


def adopt(who: Principal, filename: str, purpose: str, stored: ObjectInfo) -> Upload:
    """A file that came in one piece, as an upload that is complete."""
    row: Upload = Upload.create(
        user=who.user_id,
        project=project_for(who, None),
        filename=plain_filename(filename),
        size=stored.size,
        purpose=purpose,
        part_size=max(1, stored.size),
        sha256=stored.sha256,
        key=stored.key,
        status=COMPLETE,
        expires_at=now() + KEPT_SECONDS,
    )
    return row


def plain_filename(name: str) -> str:
    """The last part of a path, whichever system wrote it. Raises 422 when nothing is left."""
    plain = PurePosixPath(name.replace("\\", "/")).name
    if not plain or plain in (".", "..") or not plain.isprintable():
        raise invalid(["filename"], "The file needs a name that can be printed.")
    return plain


def get(who: Principal, upload_id: int) -> dict[str, Any]:
    """The upload with the parts that are there. Raises 404."""
    return as_out(find(who, upload_id))


def find(who: Principal, upload_id: int) -> Upload:
    """The user's own upload. Raises 404; what is a colleague's is not there either."""
    row: Upload | None = Upload.get_or_none(
        (Upload.id == upload_id)
        & (Upload.user == who.user_id)
        & visible(Upload, who.user_id, ProjectRole.EDITOR)
    )
    if row is None:
        raise not_found("upload")
    return row


def usable(who: Principal, upload_id: int, purpose: str, loc: list[str | int]) -> Upload:
    """A complete upload that may become a dataset or a model; its bytes are kept for it.

    Raises 422 at `loc`.
    """
    try:
        row = find(who, upload_id)
    except ParsynError:
        raise invalid(loc, "There is no such upload.") from None
    if row.purpose != purpose:
        raise invalid(loc, f"This upload was made for a {row.purpose}, not for a {purpose}.")
    kept = (
        Upload.update(expires_at=now() + KEPT_SECONDS)
        .where((Upload.id == row.id) & (Upload.status == COMPLETE))
        .execute()
    )
    if not kept:
        raise invalid(loc, "This upload is not complete; send its parts and complete it first.")
    return row


# --- parts -----------------------------------------------------------------------------------


def part_place(who: Principal, upload_id: int, n: int) -> PartPlace:
    """Where part `n` goes. Raises 422 for a number that the upload has not, 409 when it ended."""
    row = find(who, upload_id)
    if row.status != OPEN:
        raise _not_open(row)
    total = parts_total(row)
    if not 1 <= n <= total:
        raise invalid(["n"], f"The parts of this upload are numbered 1 to {total}.")
    # A key of its own for each try, so that the digest in the row is that of the bytes it names.
    return PartPlace(f"{_folder(row)}/parts/{n}-{secrets.token_hex(6)}", part_size(row, n))


def store_part(
    context: Context, who: Principal, upload_id: int, n: int, stored: ObjectInfo
) -> dict[str, Any]:
    """Note a part that lies in the storage; it replaces an earlier one of the same number."""
    row = find(who, upload_id)
    # This update also makes other parts of the upload wait (PostgreSQL), so that none is lost.
    taken = (
        Upload.update(expires_at=now() + KEPT_SECONDS)
        .where((Upload.id == row.id) & (Upload.status == OPEN))
        .execute()
    )
    if not taken:
        raise _not_open(find(who, upload_id))
    earlier = UploadPart.get_or_none((UploadPart.upload == row) & (UploadPart.n == n))
    if earlier is not None:
        outbox.delete_objects(context, [earlier.key])
        UploadPart.delete().where(UploadPart.id == earlier.id).execute()
    UploadPart.create(upload=row, n=n, size=stored.size, sha256=stored.sha256, key=stored.key)
    return {"n": n, "size": stored.size, "sha256": stored.sha256}


def parts_total(row: Upload) -> int:
    """An empty file has one part, which is empty."""
    return max(1, -(-row.size // row.part_size))


def part_size(row: Upload, n: int) -> int:
    return int(min(row.part_size, row.size - (n - 1) * row.part_size))


def _not_open(row: Upload) -> ParsynError:
    how = {JOINING: "is being joined", COMPLETE: "is complete"}.get(row.status, "was aborted")
    return ParsynError(ErrorCode.INVALID_STATE, f"This upload {how}; it takes no more parts.")


# --- the end of an upload --------------------------------------------------------------------


def begin_complete(who: Principal, upload_id: int, sha256: str | None) -> Joining | None:
    """What to join, or None when that was done already.

    Raises 409 naming the parts that are missing, or a digest that contradicts an earlier one.
    """
    row = find(who, upload_id)
    if sha256 is not None and row.sha256 is not None and sha256 != row.sha256:
        raise digest_mismatch(sha256, row.sha256)
    if row.status == COMPLETE:
        return None
    parts = {part.n: part.key for part in row.parts}
    if not parts and row.size == 0 and row.status == OPEN:
        return Joining(row.id, (), row.key, 0, sha256 or row.sha256)
    _refuse_missing(row, parts)
    Upload.update(status=JOINING).where(
        (Upload.id == row.id) & Upload.status.in_((OPEN, JOINING))
    ).execute()
    keys = tuple(parts[n] for n in sorted(parts))
    return Joining(row.id, keys, row.key, row.size, sha256 or row.sha256)


def join(context: Context, joining: Joining) -> ObjectInfo:
    """Make one object of the parts; long, so outside a transaction.

    Raises 409 `digest_mismatch` with the parts still there, so that a wrong one can be sent again.
    """
    storage = context.storage
    if not joining.keys:
        return _matching(storage.put(joining.target, ()), joining)
    if joining.sha256 is not None:
        found = _digest_of_parts(context, joining.keys)
        if found is not None and found != joining.sha256:
            raise digest_mismatch(joining.sha256, found)
    return _matching(storage.concatenate(joining.keys, joining.target), joining)


def finish_complete(who: Principal, joining: Joining, stored: ObjectInfo) -> dict[str, Any]:
    """The upload is complete."""
    UploadPart.delete().where(UploadPart.upload == joining.upload_id).execute()
    Upload.update(status=COMPLETE, sha256=stored.sha256, expires_at=now() + KEPT_SECONDS).where(
        Upload.id == joining.upload_id
    ).execute()
    return get(who, joining.upload_id)


def reopen(joining: Joining) -> None:
    """The parts did not fit; they can be replaced."""
    Upload.update(status=OPEN).where(
        (Upload.id == joining.upload_id) & (Upload.status == JOINING)
    ).execute()


def abort(context: Context, who: Principal, upload_id: int) -> None:
    """Forget the parts. Raises 409 when it is complete: then it belongs to whatever uses it."""
    row = find(who, upload_id)
    stopped = (
        Upload.update(status=ABORTED)
        .where((Upload.id == row.id) & Upload.status.in_((OPEN, JOINING)))
        .execute()
    )
    if stopped:
        _forget_parts(context, row)
    elif row.status == COMPLETE:
        raise ParsynError(
            ErrorCode.INVALID_STATE, "This upload is complete; delete what was made of it instead."
        )


def expire(context: Context) -> int:
    """Forget what nobody went on with; returns how many uploads. Call it in a write transaction."""
    stale = list(Upload.select().where(Upload.expires_at < now()).limit(100))
    for row in stale:
        if row.status in (OPEN, JOINING):
            Upload.update(status=ABORTED, expires_at=now() + FORGOTTEN_SECONDS).where(
                (Upload.id == row.id) & (Upload.expires_at < now())
            ).execute()
            _forget_parts(context, row)
            continue
        gone = Upload.delete().where((Upload.id == row.id) & (Upload.expires_at < now())).execute()
        if gone and row.status == COMPLETE:
            outbox.delete_objects(context, _part_keys(context, row))
            delete_unused(context, [row.key])
    return len(stale)


def delete_unused(context: Context, keys: list[str]) -> None:
    """Delete those objects that no dataset or model names (any more), and their uploads."""
    for start in range(0, len(keys), 500):
        unused = set(keys[start : start + 500])
        for table in (Dataset, ModelFile):
            unused -= {
                row.key for row in table.select(table.key).where(table.key.in_(list(unused)))
            }
        Upload.delete().where(Upload.key.in_(list(unused)) & (Upload.status == COMPLETE)).execute()
        outbox.delete_objects(context, unused)


def as_out(row: Upload) -> dict[str, Any]:
    parts = UploadPart.select().where(UploadPart.upload == row).order_by(UploadPart.n)
    return {
        **row.as_dict(),
        "parts_total": parts_total(row),
        "status": OPEN if row.status == JOINING else row.status,
        "direct": False,
        "received": [part.as_dict() for part in parts],
    }


def digest_mismatch(promised: str, found: str) -> ParsynError:
    return ParsynError(
        ErrorCode.DIGEST_MISMATCH,
        f"The file should have the SHA-256 {promised} but has {found}. Compare the parts' digests "
        "with your file's and send again the one that differs.",
    )


def _forget_parts(context: Context, row: Upload) -> None:
    outbox.delete_objects(context, [*_part_keys(context, row), row.key])
    UploadPart.delete().where(UploadPart.upload == row).execute()


def _part_keys(context: Context, row: Upload) -> list[str]:
    """What lies in the upload's folder, parts included whose sender died before they were noted."""
    return [info.key for info in context.storage.list(f"{_folder(row)}/parts")]


def _folder(row: Upload) -> str:
    return str(row.key).rpartition("/")[0]


def _refuse_missing(row: Upload, parts: dict[int, str]) -> None:
    if row.status == ABORTED:
        raise _not_open(row)
    missing = [n for n in range(1, parts_total(row) + 1) if n not in parts]
    if missing:
        named = ", ".join(map(str, missing[:MOST_NAMED]))
        more = "" if len(missing) <= MOST_NAMED else f" and {len(missing) - MOST_NAMED} more"
        raise ParsynError(
            ErrorCode.CONFLICT,
            f"Parts are missing: {named}{more}. Send them, then complete again.",
            errors=[
                FieldError(("parts", n), "This part is missing.") for n in missing[:MOST_NAMED]
            ],
        )


def _matching(stored: ObjectInfo, joining: Joining) -> ObjectInfo:
    if stored.size != joining.size:
        raise ParsynError(
            ErrorCode.CONFLICT,
            f"The parts make {stored.size:,} bytes where {joining.size:,} were announced.",
        )
    if joining.sha256 is not None and stored.sha256 != joining.sha256:
        raise digest_mismatch(joining.sha256, str(stored.sha256))
    return stored


def _digest_of_parts(context: Context, keys: tuple[str, ...]) -> str | None:
    """None when an earlier try has begun to consume the parts."""
    digest = hashlib.sha256()
    try:
        for chunk in _all_chunks(context, keys):
            digest.update(chunk)
    except ParsynError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return None
        raise
    return digest.hexdigest()


def _all_chunks(context: Context, keys: tuple[str, ...]) -> Iterator[bytes]:
    for key in keys:
        yield from context.storage.get(key)
