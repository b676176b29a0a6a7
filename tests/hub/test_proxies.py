"""What a reverse proxy says of the client counts only where the proxy is trusted."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.errors import ParsynError
from parsyn.hub.proxies import TrustedProxies, networks_of


async def seen(
    peer: str, *, trusted: list[str], kind: str = "http", **headers: str
) -> tuple[str, str]:
    """(client address, scheme) as the application sees them."""
    found: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.update(scope)

    scope = {
        "type": kind,
        "client": (peer, 4000),
        "scheme": "ws" if kind == "websocket" else "http",
        "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()],
    }
    await TrustedProxies(app, networks_of(trusted))(scope, None, None)
    return found["client"][0], found["scheme"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("::ffff:127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "6.6.6.6, 203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("127.0.0.1", "10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("127.0.0.1", "nonsense", "127.0.0.1"),
        ("127.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("198.51.100.4", "203.0.113.9", "198.51.100.4"),
    ],
)
async def test_the_client_is_the_last_hop_that_is_no_proxy(
    peer: str, forwarded: str, expected: str
) -> None:
    trusted = ["127.0.0.1", "10.0.0.0/8"]
    client, _ = await seen(peer, trusted=trusted, x_forwarded_for=forwarded)
    assert client == expected


async def test_the_scheme_is_that_of_the_outside() -> None:
    told = {"trusted": ["127.0.0.1"], "x_forwarded_proto": "https"}
    assert (await seen("127.0.0.1", **told))[1] == "https"  # type: ignore[arg-type]
    assert (await seen("127.0.0.1", kind="websocket", **told))[1] == "wss"  # type: ignore[arg-type]
    assert (await seen("198.51.100.4", **told))[1] == "http"  # type: ignore[arg-type]
    assert (await seen("127.0.0.1", trusted=["127.0.0.1"], x_forwarded_proto="gopher"))[1] == "http"


def test_what_is_no_network_is_one_line() -> None:
    with pytest.raises(ParsynError, match=r"hub\.trusted_proxies") as refused:
        networks_of(["127.0.0.1", "the office"])
    assert "\n" not in refused.value.detail
