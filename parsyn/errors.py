"""The one exception that may reach a person, and its closed set of codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ErrorCode(StrEnum):
    """Stable words that scripts and the web UI may branch on."""

    MALFORMED = "malformed"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    CSRF_FAILED = "csrf_failed"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    VALIDATION_FAILED = "validation_failed"
    INVALID_STATE = "invalid_state"
    STALE_ATTEMPT = "stale_attempt"
    CONFLICT = "conflict"
    DIGEST_MISMATCH = "digest_mismatch"
    TOO_LARGE = "too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    QUOTA_EXCEEDED = "quota_exceeded"
    INSUFFICIENT_CREDITS = "insufficient_credits"
    RATE_LIMITED = "rate_limited"
    NO_WORKER = "no_worker"
    BAD_DATA = "bad_data"
    MODEL_UNAVAILABLE = "model_unavailable"
    UNSUPPORTED = "unsupported"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    CONFIG = "config"
    INTERNAL = "internal"


STATUS_OF: dict[ErrorCode, int] = {
    ErrorCode.MALFORMED: 400,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.CSRF_FAILED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.VALIDATION_FAILED: 422,
    ErrorCode.INVALID_STATE: 409,
    ErrorCode.STALE_ATTEMPT: 409,
    ErrorCode.CONFLICT: 409,
    ErrorCode.DIGEST_MISMATCH: 409,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorCode.RANGE_NOT_SATISFIABLE: 416,
    ErrorCode.QUOTA_EXCEEDED: 403,
    ErrorCode.INSUFFICIENT_CREDITS: 402,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.NO_WORKER: 503,
    ErrorCode.BAD_DATA: 422,
    ErrorCode.MODEL_UNAVAILABLE: 422,
    ErrorCode.UNSUPPORTED: 422,
    ErrorCode.TIMEOUT: 504,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.CONFIG: 500,
    ErrorCode.INTERNAL: 500,
}


@dataclass(frozen=True)
class FieldError:
    """One message at one place of a request body, e.g. loc ("config", "lora_r")."""

    loc: tuple[str | int, ...]
    msg: str

    def as_dict(self) -> dict[str, Any]:
        return {"loc": list(self.loc), "msg": self.msg}


class ParsynError(Exception):
    """What is wrong, where, and what to do, in one sentence or two.

    `code` decides the HTTP status; `errors` points at fields; `retry_after` is in seconds.
    """

    def __init__(
        self,
        code: ErrorCode,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return STATUS_OF[self.code]

    def as_problem(self) -> dict[str, Any]:
        """The `application/problem+json` object of the HTTP contract."""
        return {
            "type": f"urn:parsyn:error:{self.code}",
            "title": self.code.replace("_", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "code": str(self.code),
            "errors": [error.as_dict() for error in self.errors],
        }


def not_found(what: str) -> ParsynError:
    """The one answer for rows that do not exist and for rows that are not yours."""
    return ParsynError(ErrorCode.NOT_FOUND, f"There is no such {what}.")


def invalid(loc: Sequence[str | int], msg: str) -> ParsynError:
    """A 422 at one field."""
    return ParsynError(ErrorCode.VALIDATION_FAILED, msg, errors=[FieldError(tuple(loc), msg)])
