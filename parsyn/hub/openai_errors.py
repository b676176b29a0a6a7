"""Problems in the shape that OpenAI's clients read."""

from __future__ import annotations

import json
from typing import Any

from quart import Response, request

PROBLEM = "application/problem+json"
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
CODES = {"unauthenticated": "invalid_api_key"}


def body_of(problem: dict[str, Any]) -> dict[str, Any]:
    """`{"error": {message, type, code, param}}` of a problem object."""
    status = status_of(problem)
    kind = "server_error" if status >= 500 else TYPES.get(status, "invalid_request_error")
    param = ".".join(map(str, problem["errors"][0]["loc"])) if problem["errors"] else ""
    code = CODES.get(problem["code"], problem["code"])
    if (code, param) == ("not_found", "model"):
        code = "model_not_found"
    return {
        "error": {"message": problem["detail"], "type": kind, "code": code, "param": param or None}
    }


def status_of(problem: dict[str, Any]) -> int:
    """OpenAI answers a body that fails validation with 400."""
    return 400 if problem["status"] == 422 else int(problem["status"])


async def reshape(response: Response) -> Response:
    """Turn every problem below /v1 into OpenAI's shape, whoever noticed it."""
    if not request.path.startswith("/v1/") or response.mimetype != PROBLEM:
        return response
    problem = json.loads(await response.get_data(as_text=True))
    response.set_data(json.dumps(body_of(problem), ensure_ascii=False))
    response.status_code = status_of(problem)
    response.content_type = "application/json"
    return response
