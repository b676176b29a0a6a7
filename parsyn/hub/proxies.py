"""Who really asks, where a reverse proxy stands between: only what a trusted one says counts."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from parsyn.errors import ErrorCode, ParsynError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
App = Callable[[Any, Any, Any], Awaitable[None]]


def networks_of(names: Sequence[str]) -> tuple[Network, ...]:
    """`hub.trusted_proxies` as networks. Raises ParsynError `config`."""
    try:
        return tuple(ipaddress.ip_network(name, strict=False) for name in names)
    except ValueError as error:
        raise ParsynError(
            ErrorCode.CONFIG,
            f"hub.trusted_proxies holds addresses or networks like 10.0.0.0/8: {error}.",
        ) from None


class TrustedProxies:
    """ASGI around the application: takes `X-Forwarded-For` and `-Proto` from `networks` only."""

    def __init__(self, app: App, networks: tuple[Network, ...]) -> None:
        self._app, self._networks = app, networks

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] in ("http", "websocket") and self._trusts(_peer(scope)):
            scope = {**scope, **self._forwarded(scope)}
        await self._app(scope, receive, send)

    def _trusts(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)

    def _forwarded(self, scope: Any) -> dict[str, Any]:
        told: dict[str, Any] = {}
        client = self._client(_values(scope, b"x-forwarded-for"))
        if client is not None:
            told["client"] = (str(client), 0)
        schemes = _values(scope, b"x-forwarded-proto")
        if schemes and schemes[-1] in ("http", "https"):
            sockets = {"http": "ws", "https": "wss"}
            plain = schemes[-1]
            told["scheme"] = sockets[plain] if scope["type"] == "websocket" else plain
        return told

    def _client(self, hops: list[str]) -> Address | None:
        """The last hop that is no trusted proxy; each proxy appends the one that it saw."""
        nearest: Address | None = None
        for hop in reversed(hops):
            try:
                nearest = _parsed(hop)
            except ValueError:
                return nearest
            if not self._trusts(nearest):
                return nearest
        return nearest


def _peer(scope: Any) -> Address | None:
    try:
        return _parsed(scope["client"][0])
    except (ValueError, TypeError, KeyError):
        return None


def _parsed(text: str) -> Address:
    """An address, with `::ffff:` taken off. Raises ValueError."""
    address = ipaddress.ip_address(text.strip().strip("[]"))
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _values(scope: Any, wanted: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    found = [value.decode("latin-1") for name, value in headers if name.lower() == wanted]
    return [part.strip() for part in ",".join(found).split(",") if part.strip()]
