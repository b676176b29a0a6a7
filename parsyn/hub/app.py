"""The Quart application: routes, guard, errors, life cycle."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import secrets
from dataclasses import dataclass, field
from typing import Any

import peewee
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub import requests, streaming
from parsyn.hub.auth import guard
from parsyn.hub.figures import figures_of
from parsyn.hub.proxies import TrustedProxies, networks_of
from parsyn.hub.routing import Api, Endpoint
from parsyn.services.context import Context

log = logging.getLogger(__name__)
ROUTES = (
    "api_system",
    "api_metrics",
    "api_accounts",
    "api_keys",
    "api_admin",
    "api_uploads",
    "api_datasets",
    "api_models",
    "api_training",
    "api_presets",
    "api_evaluations",
    "api_exports",
    "api_queue",
    "api_workers",
    "api_install",
    "api_conversations",
    "openai_api",
    "storage_routes",
)
PUBLIC_BODY_LIMIT = 64 * 1024**2
HTTP_CODES = {
    400: ErrorCode.MALFORMED,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    408: ErrorCode.TIMEOUT,
    413: ErrorCode.TOO_LARGE,
    415: ErrorCode.UNSUPPORTED_MEDIA_TYPE,
}


@dataclass
class Hub:
    """One hub process: its context, and what lives on its event loop."""

    context: Context
    endpoints: list[Endpoint] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    parts: dict[str, Any] = field(default_factory=dict)

    def spawn(self, coroutine: Any, name: str) -> asyncio.Task[Any]:
        """Run in the background until it ends or the hub stops; a failure is logged."""
        task = asyncio.create_task(coroutine, name=name)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("%s failed", task.get_name(), exc_info=task.exception())


def create_app(context: Context) -> Quart:
    """The hub's ASGI application around an open context (migrated database)."""
    app = Quart("parsyn.hub", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = PUBLIC_BODY_LIMIT
    app.config["BODY_TIMEOUT"] = 300
    app.config["RESPONSE_TIMEOUT"] = 120
    streaming.mount(app)
    hub = Hub(context)
    app.extensions["parsyn"] = hub
    requests.mount(app, figures_of(hub))
    app.before_request(guard)
    app.after_request(_headers)
    app.register_error_handler(ParsynError, _problem)
    app.register_error_handler(HTTPException, _http_problem)
    for too_large in (OverflowError, peewee.DataError):
        app.register_error_handler(too_large, _out_of_range)
    app.register_error_handler(peewee.IntegrityError, _twin)
    app.register_error_handler(Exception, _internal)
    for name in ROUTES:
        _mount(app, hub, importlib.import_module(f"parsyn.hub.{name}").api)
    importlib.import_module("parsyn.hub.static").mount(app)
    for name in ("socket_worker", "socket_dashboard"):
        importlib.import_module(f"parsyn.hub.{name}").mount(app, hub)
    for blueprints in context.plugins.pluggy.hook.register_blueprints():
        for blueprint in blueprints:
            app.register_blueprint(blueprint, url_prefix=f"/plugins/{blueprint.name}")
    importlib.import_module("parsyn.hub.lifecycle").mount(app, hub)
    networks = networks_of(context.settings.names("hub.trusted_proxies"))
    if networks:
        app.asgi_app = TrustedProxies(app.asgi_app, networks)  # type: ignore[method-assign]
    return app


def _mount(app: Quart, hub: Hub, api: Api) -> None:
    app.register_blueprint(api.blueprint)
    hub.endpoints += api.endpoints


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


async def _headers(response: Response) -> Response:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    response.headers.setdefault("X-Frame-Options", "DENY")
    if request.path.startswith(("/api/", "/v1/")):
        response.headers.setdefault("Cache-Control", "no-store")
    return response
