"""A WebSocket client that costs next to nothing: prebuilt frames out, plain bytes in.

A thousand of them share one event loop on one core, so that what is measured is the hub.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Callable

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
# A mask of zeros is a mask, and leaves the payload as it was built.
NO_MASK = b"\0\0\0\0"


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """One whole client frame."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    return head + NO_MASK + payload


class RawSocket(asyncio.Protocol):
    """`on_text` gets each text message, `on_close` the close code (0: no close frame came)."""

    def __init__(
        self,
        path: str,
        headers: dict[str, str],
        on_text: Callable[[bytes], None],
        on_close: Callable[[int, str], None],
    ) -> None:
        self._path, self._headers = path, headers
        self._on_text, self._on_close = on_text, on_close
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._code, self._reason = 0, ""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._upgraded = False

    def send(self, payload: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame(payload))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.write(frame(struct.pack("!H", 1001), CLOSE))
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {self._path} HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket",
            "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}",
            *(f"{name}: {value}" for name, value in self._headers.items()), "", "",
        ]  # fmt: skip
        transport.write("\r\n".join(lines).encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._upgraded and not self._upgrade():
            return
        while self._take_frame():
            pass

    def _upgrade(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        status = bytes(self._buffer[: self._buffer.find(b"\r\n")])
        del self._buffer[: end + 4]
        if b" 101 " not in status + b" ":
            self._code, self._reason = -1, status.decode()
            assert self._transport is not None
            self._transport.close()
            return False
        self._upgraded = True
        if not self.opened.done():
            self.opened.set_result(None)
        return True

    def _take_frame(self) -> bool:
        buffer = self._buffer
        have = len(buffer)
        if have < 2:
            return False
        size, start = buffer[1] & 0x7F, 2
        if size == 126:
            if have < 4:
                return False
            size, start = struct.unpack_from("!H", buffer, 2)[0], 4
        elif size == 127:
            if have < 10:
                return False
            size, start = struct.unpack_from("!Q", buffer, 2)[0], 10
        if have < start + size:
            return False
        payload = bytes(buffer[start : start + size])
        head = buffer[0]
        del buffer[: start + size]
        self._handle(head & 0x0F, bool(head & 0x80), payload)
        return True

    def _handle(self, opcode: int, final: bool, payload: bytes) -> None:
        if opcode <= TEXT:
            self._parts.append(payload)
            if final:
                whole = b"".join(self._parts) if len(self._parts) > 1 else payload
                self._parts.clear()
                self._on_text(whole)
        elif opcode == PING and self._transport is not None:
            self._transport.write(frame(payload, PONG))
        elif opcode == CLOSE and self._transport is not None:
            if len(payload) >= 2:
                self._code = struct.unpack_from("!H", payload)[0]
                self._reason = payload[2:].decode(errors="replace")
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self._reason or "closed before the upgrade"))
            self.opened.exception()
        self._on_close(self._code, self._reason)


async def open_socket(
    port: int,
    path: str,
    headers: dict[str, str],
    on_text: Callable[[bytes], None],
    on_close: Callable[[int, str], None],
) -> RawSocket:
    """A socket that is open. Raises OSError where it cannot be."""
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(
        lambda: RawSocket(path, headers, on_text, on_close), "127.0.0.1", port
    )
    await made.opened
    return made
