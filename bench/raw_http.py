"""An HTTP/1.1 client that keeps one connection and does nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class RawHttp:
    def __init__(self, port: int, api_key: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {api_key}\r\n"

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, path: str, body: Any = None) -> Any:
        """The JSON of the answer. Raises SystemExit with it where it is an error."""
        payload = json.dumps(body if body is not None else {}).encode()
        self._writer.write(
            f"POST {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\n\r\n".encode()
            + payload
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        answer = await self._reader.readexactly(length)
        if not head.startswith(("http/1.1 200", "http/1.1 201")):
            raise SystemExit(f"POST {path}: {answer.decode()}")
        return json.loads(answer)

    def close(self) -> None:
        self._writer.close()
