"""Every request has an id, which its answer and its lines in the log carry, and is timed."""

from __future__ import annotations

import logging
import re
import secrets
import time

from quart import Quart, Response, g, request

from parsyn.hub.auth import declared_endpoint
from parsyn.hub.figures import HubFigures
from parsyn.services.asking import Asking, asking

log = logging.getLogger(__name__)
GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
SLOW_SECONDS = 5.0
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def mount(app: Quart, figures: HubFigures) -> None:
    """Begin and end every request here; before the guard, after everything else."""

    async def begin() -> None:
        given = request.headers.get("X-Request-ID", "")
        g.request_id = given if GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        g.began = time.monotonic()
        asking.set(Asking(g.request_id, request.remote_addr))

    async def end(response: Response) -> Response:
        if "began" not in g:
            return response
        seconds = time.monotonic() - g.began
        endpoint = declared_endpoint() if request.routing_exception is None else None
        route = endpoint.path if endpoint is not None else "(other)"
        status = response.status_code
        method = request.method if request.method in METHODS else "(other)"
        figures.requests.labels(method, route, f"{status // 100}xx").observe(seconds)
        response.headers["X-Request-ID"] = g.request_id
        level = logging.WARNING if seconds > SLOW_SECONDS else logging.DEBUG
        log.log(level, "%s %s answered %d after %.3f s", request.method, route, status, seconds)
        return response

    app.before_request(begin)
    app.after_request(end)
