"""The hub's address: the socket's URL and the HTTP base that belongs to it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit, urlunsplit

SOCKET_PATH = "/ws/worker"
_SCHEMES = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}


@dataclass(frozen=True)
class HubAddress:
    """`socket` is `ws(s)://host[:port][/prefix]/ws/worker`, `http` the same without that end."""

    socket: str
    http: str
    host: str
    port: int
    secure: bool

    @classmethod
    def parse(cls, text: str) -> HubAddress:
        """Complete a host, `https://host` or a socket URL. Raises ValueError with a predicate."""
        text = text.strip()
        if "://" not in text:
            text = f"wss://{text}"
        parts = urlsplit(text)
        scheme = _SCHEMES.get(parts.scheme.lower())
        if scheme is None:
            raise ValueError("must begin with wss://, https://, ws:// or http://")
        if not parts.hostname or parts.username or parts.password:
            raise ValueError("must name a host, and no user or password")
        if parts.query or parts.fragment:
            raise ValueError("must end after its path, without ? and #")
        try:
            port = parts.port or (443 if scheme == "wss" else 80)
        except ValueError:
            raise ValueError("has a port that is not between 1 and 65535") from None
        prefix = parts.path.rstrip("/").removesuffix(SOCKET_PATH)
        return cls(
            socket=urlunsplit((scheme, parts.netloc, prefix + SOCKET_PATH, "", "")),
            http=urlunsplit(("https" if scheme == "wss" else "http", parts.netloc, prefix, "", "")),
            host=parts.hostname,
            port=port,
            secure=scheme == "wss",
        )

    @property
    def local(self) -> bool:
        """The hub is on this machine, so that an unencrypted socket gives nothing away."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def below(self, url: str) -> str:
        """A ticket's URL made absolute; only http and https are followed."""
        absolute = self.http + url if url.startswith("/") else urljoin(self.http + "/", url)
        if urlsplit(absolute).scheme not in ("http", "https"):
            raise ValueError("a ticket must lead to http or https")
        return absolute
