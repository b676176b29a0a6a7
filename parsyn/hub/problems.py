"""Every failure of a request as `application/problem+json`, in words."""

from __future__ import annotations

import json
import logging
import secrets

import peewee
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

from parsyn.errors import ErrorCode, ParsynError

log = logging.getLogger(__name__)
HTTP_CODES = {
    400: ErrorCode.MALFORMED,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    408: ErrorCode.TIMEOUT,
    413: ErrorCode.TOO_LARGE,
    415: ErrorCode.UNSUPPORTED_MEDIA_TYPE,
}


def mount(app: Quart) -> None:
    app.register_error_handler(ParsynError, _problem)
    app.register_error_handler(HTTPException, _http_problem)
    for too_large in (OverflowError, peewee.DataError):
        app.register_error_handler(too_large, _out_of_range)
    app.register_error_handler(peewee.IntegrityError, _twin)
    app.register_error_handler(Exception, _internal)


async def _problem(error: ParsynError) -> Response:
    return problem_response(error)


def problem_response(error: ParsynError) -> Response:
    """`application/problem+json` of an error, with `Retry-After` where it has one."""
    body = json.dumps(error.as_problem(), ensure_ascii=False)
    answer = Response(body, status=error.status, content_type="application/problem+json")
    if error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


async def _http_problem(error: HTTPException) -> Response:
    if error.code is not None and 300 <= error.code < 400:
        return Response("", status=error.code, headers=dict(error.get_headers()))
    code = HTTP_CODES.get(error.code or 500, ErrorCode.INTERNAL)
    detail = {
        ErrorCode.NOT_FOUND: f"There is nothing at {request.path}.",
        ErrorCode.METHOD_NOT_ALLOWED: f"{request.path} does not take {request.method}.",
        ErrorCode.TOO_LARGE: "The body is too large; upload files in parts.",
    }.get(code, error.description or "The request cannot be understood.")
    return problem_response(ParsynError(code, detail))


async def _out_of_range(error: Exception) -> Response:
    """An id or count in a body that no column of a database can hold."""
    return problem_response(
        ParsynError(ErrorCode.VALIDATION_FAILED, "A number in the request is out of range.")
    )


async def _twin(error: Exception) -> Response:
    """Two requests made the same thing, or one used what another deleted, at the same moment."""
    log.info("request %s %s collided: %s", request.method, request.path, error)
    return problem_response(
        ParsynError(
            ErrorCode.CONFLICT, "Another request changed the same thing just now; try again."
        )
    )


async def _internal(error: Exception) -> Response:
    reference = secrets.token_hex(4)
    log.error("request %s %s failed (%s)", request.method, request.path, reference, exc_info=error)
    return problem_response(
        ParsynError(
            ErrorCode.INTERNAL,
            f"Something went wrong inside the hub. Its log has the cause under {reference}.",
        )
    )
