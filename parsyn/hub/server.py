"""Serve the application with the ASGI server that the settings name."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any

from quart import Quart

from parsyn.config import Settings
from parsyn.errors import ErrorCode, ParsynError

GRACEFUL_SECONDS = 5
FRAME_LIMIT = 16 * 1024**2


def bind(settings: Settings) -> socket.socket:
    """A bound listening socket; a taken port is one line that names it."""
    host, port = settings.text("hub.host"), settings.integer("hub.port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ParsynError(
            ErrorCode.CONFIG,
            f"{host}:{port} cannot be bound: {error.strerror}. Another program may use it; "
            "choose another one with --port.",
        ) from error
    listener.setblocking(False)
    return listener


async def serve(
    app: Quart, settings: Settings, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then say goodbye on every socket and drain."""
    signalled, stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    leaving = asyncio.create_task(_leave(app, signalled, stop))
    ready = asyncio.create_task(_announce(listener.getsockname()[:2], on_ready))
    try:
        await SERVERS[settings.text("hub.server")](app, settings, listener, stop)
    finally:
        ready.cancel()
        leaving.cancel()


async def _leave(app: Quart, signalled: asyncio.Event, stop: asyncio.Event) -> None:
    await signalled.wait()
    try:
        await app.extensions["parsyn"].parts["lifecycle"].drain()
    finally:
        stop.set()


async def _announce(address: tuple[str, int], on_ready: Callable[[], None]) -> None:
    host, port = address
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    while True:
        try:
            reader, writer = await asyncio.open_connection(target, port)
            writer.write(b"GET /health HTTP/1.0\r\nHost: parsyn\r\n\r\n")
            answered = await reader.readline()
            writer.close()
            if answered.startswith(b"HTTP/"):
                break
        except OSError:
            await asyncio.sleep(0.05)
    on_ready()


async def _hypercorn(
    app: Quart, settings: Settings, listener: socket.socket, stop: asyncio.Event
) -> None:
    from hypercorn.asyncio import serve as serve_hypercorn
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.graceful_timeout = GRACEFUL_SECONDS
    config.shutdown_timeout = GRACEFUL_SECONDS
    config.websocket_max_message_size = FRAME_LIMIT
    config.include_server_header = False
    config.loglevel = "WARNING"
    config.errorlog = logging.getLogger("hypercorn.error")
    config.keep_alive_timeout = 75
    await serve_hypercorn(app, config, shutdown_trigger=stop.wait)


async def _uvicorn(
    app: Quart, settings: Settings, listener: socket.socket, stop: asyncio.Event
) -> None:
    uvicorn = _installed("uvicorn")
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        server_header=False,
        ws_max_size=FRAME_LIMIT,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    server = uvicorn.Server(config)
    # Signals are handled in `serve`: the sockets get their goodbye first.
    server.capture_signals = contextlib.nullcontext
    running = asyncio.create_task(server.serve(sockets=[listener]))
    await stop.wait()
    server.should_exit = True
    await running


async def _granian(
    app: Quart, settings: Settings, listener: socket.socket, stop: asyncio.Event
) -> None:
    _installed("granian")
    from granian.server.embed import Server

    host, port = listener.getsockname()[:2]
    listener.close()
    server = Server(app, address=host, port=port, interface="asgi", websockets=True)
    running = asyncio.create_task(server.serve())
    await stop.wait()
    server.stop()
    await running


def _installed(name: str) -> Any:

    try:
        return importlib.import_module(name)
    except ImportError:
        raise ParsynError(
            ErrorCode.CONFIG,
            f"hub.server is {name}, which is not installed: pip install 'parsyn[servers]'.",
        ) from None


SERVERS = {"hypercorn": _hypercorn, "uvicorn": _uvicorn, "granian": _granian}
