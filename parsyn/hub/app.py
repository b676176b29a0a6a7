"""The Quart application, put together of its parts."""

from __future__ import annotations

import importlib

from quart import Quart, Response, request

from parsyn.hub import problems, requests, streaming
from parsyn.hub.auth import guard
from parsyn.hub.figures import figures_of
from parsyn.hub.hub import Hub
from parsyn.hub.proxies import TrustedProxies, networks_of
from parsyn.hub.routing import Api
from parsyn.services.context import Context

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
    problems.mount(app)
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


async def _headers(response: Response) -> Response:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    response.headers.setdefault("X-Frame-Options", "DENY")
    if request.path.startswith(("/api/", "/v1/")):
        response.headers.setdefault("Cache-Control", "no-store")
    return response
