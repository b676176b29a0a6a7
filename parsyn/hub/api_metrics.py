"""Figures for the monitoring, in Prometheus' own form."""

from __future__ import annotations

import hmac
import ipaddress

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from quart import Response, request

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.figures import figures_of
from parsyn.hub.hub import hub
from parsyn.hub.routing import Api

api = Api("metrics", prefix="")


@api.endpoint("GET", "/metrics", scope=None)
async def metrics() -> Response:
    """Figures of this hub process; for `hub.metrics_token`, or for this machine alone."""
    _check()
    return Response(await figures_of(hub()).text(), content_type=CONTENT_TYPE_LATEST)


def _check() -> None:
    token = hub().context.settings.text("hub.metrics_token")
    if token:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
            raise ParsynError(
                ErrorCode.UNAUTHENTICATED, "Send `Authorization: Bearer` with hub.metrics_token."
            )
    elif not _asked_here():
        raise ParsynError(
            ErrorCode.FORBIDDEN,
            "Only this machine may ask for figures until hub.metrics_token is set.",
        )


def _asked_here() -> bool:
    """True for a client on this machine that no proxy speaks for."""
    if any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP")):
        return False
    try:
        return ipaddress.ip_address(request.remote_addr or "").is_loopback
    except ValueError:
        return True  # a Unix socket
