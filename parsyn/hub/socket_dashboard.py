"""`/ws/dashboard`: what browsers watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import cast
from urllib.parse import urlsplit

from pydantic import ValidationError
from quart import Quart, Websocket, websocket

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.auth import SESSION_COOKIE, allowed_origins, find
from parsyn.hub.broker import close_reason
from parsyn.hub.fanout import Fanout, Watcher, frame
from parsyn.hub.hub import Hub
from parsyn.services import watching
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.wire.events import (
    Authenticate,
    ClientMessage,
    EventType,
    Ping,
    Subscribe,
    Unsubscribe,
    client_messages,
)
from parsyn.wire.states import Scope
from parsyn.wire.worker import CloseCode

log = logging.getLogger(__name__)
AUTHENTICATE_SECONDS = 20.0
SEND_SECONDS = 30.0
CLOSE_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 30.0
TOPIC_LIMIT = 500
FRAME_SECONDS = 0.1


def mount(app: Quart, hub: Hub) -> None:
    """Serve the browsers' sockets."""
    fanout = Fanout()
    hub.parts["fanout"] = fanout

    @app.websocket("/ws/dashboard")
    async def dashboard_socket() -> None:
        socket = cast("Websocket", websocket._get_current_object())  # type: ignore[attr-defined]
        await Dashboard(hub.context, fanout, socket).serve()


class Dashboard:
    """One browser's socket."""

    def __init__(self, context: Context, fanout: Fanout, socket: Websocket) -> None:
        self.context, self.fanout, self.socket = context, fanout, socket
        self.watcher = Watcher()
        self.token, self.via = "", ""

    async def serve(self) -> None:
        await self.socket.accept()
        self.fanout.add(self.watcher)
        sending = asyncio.create_task(self._send())
        try:
            receiving = asyncio.create_task(self._receive())
            await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                self.watcher.close(int(CloseCode.GOING_AWAY), "")
                await asyncio.wait({sending}, timeout=CLOSE_SECONDS)
        finally:
            for task in (receiving, sending):
                task.cancel()
            await asyncio.gather(receiving, sending, return_exceptions=True)
            self.fanout.remove(self.watcher)
        code, reason = self.watcher.closing or (int(CloseCode.GOING_AWAY), "")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.socket.close(code, close_reason(reason))

    # --- who is it ----------------------------------------------------------------------------

    async def _identify(self) -> Principal:
        """By the cookie when the page is this hub's own, else by the first message. Raises 401."""
        cookie = self.socket.cookies.get(SESSION_COOKIE)
        if cookie and self._own_page():
            self.token, self.via = cookie, "cookie"
        else:
            async with asyncio.timeout(AUTHENTICATE_SECONDS):
                message = client_messages.validate_json(await self.socket.receive())
            if not isinstance(message, Authenticate):
                raise ParsynError(
                    ErrorCode.UNAUTHENTICATED,
                    'Send {"type":"authenticate","token":"…"} first, or come with the cookie.',
                )
            self.token, self.via = message.token, "bearer"
        return await self._principal()

    async def _principal(self) -> Principal:
        who = await find(self.token, self.via)
        if Scope.READ not in who.scopes:
            raise ParsynError(ErrorCode.FORBIDDEN, "This API key lacks the scope `read`.")
        return who

    def _own_page(self) -> bool:
        """Any page may open a socket here and the browser adds the cookie; only ours may use it."""
        origin = self.socket.headers.get("Origin")
        if origin is None:
            return False
        return origin in allowed_origins() or urlsplit(origin).netloc == self.socket.host

    # --- in -----------------------------------------------------------------------------------

    async def _receive(self) -> None:
        try:
            who = await self._identify()
        except TimeoutError:
            self.watcher.close(int(CloseCode.BAD_CREDENTIAL), "Nobody said who this is.")
            return
        except (ValidationError, ParsynError) as error:
            self._refuse(error)
            return
        checking = asyncio.create_task(self._keep_alive())
        try:
            while self.watcher.closing is None:
                await self._take(who, await self.socket.receive())
        except Exception:
            log.exception("a dashboard's message could not be handled")
            self.watcher.close(int(CloseCode.SERVICE_RESTART), "The hub could not handle it.")
        finally:
            checking.cancel()

    def _refuse(self, error: ValidationError | ParsynError) -> None:
        problem = error if isinstance(error, ParsynError) else malformed(error)
        self.watcher.say(EventType.ERROR, None, problem.as_problem())
        forbidden = problem.code is ErrorCode.FORBIDDEN
        code = CloseCode.REVOKED if forbidden else CloseCode.BAD_CREDENTIAL
        self.watcher.close(int(code), problem.detail)

    async def _take(self, who: Principal, frame: str | bytes) -> None:
        try:
            message = client_messages.validate_json(frame)
        except ValidationError as error:
            self.watcher.say(EventType.ERROR, None, malformed(error).as_problem())
            return
        await self._obey(who, message)

    async def _obey(self, who: Principal, message: ClientMessage) -> None:
        if isinstance(message, Ping):
            self.watcher.say(EventType.PONG, None, {})
        elif isinstance(message, Unsubscribe):
            for topic in message.topics:
                self.fanout.unsubscribe(self.watcher, topic)
        elif isinstance(message, Subscribe):
            for topic in message.topics:
                try:
                    await self._subscribe(who, topic)
                except ParsynError as error:
                    self.watcher.say(EventType.ERROR, topic[:200], error.as_problem())

    async def _subscribe(self, who: Principal, topic: str) -> None:
        if len(self.watcher.topics) >= TOPIC_LIMIT and topic not in self.watcher.topics:
            raise ParsynError(
                ErrorCode.QUOTA_EXCEEDED, f"One socket may watch {TOPIC_LIMIT} topics."
            )
        read = self.context.database.read
        inner = await read(watching.topics_of, who, topic)
        # First the subscription, then the snapshot: what happens in between is told twice, not
        # never.
        self.fanout.subscribe(self.watcher, topic, inner)
        self.watcher.say(EventType.SNAPSHOT, topic, await read(watching.snapshot, who, topic))

    async def _keep_alive(self) -> None:
        """Look whether the login still holds, and give proxies something to carry."""
        while True:
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            try:
                await self._principal()
            except ParsynError as error:
                self._refuse(error)
                return
            self.watcher.say(EventType.PONG, None, {})

    # --- out ----------------------------------------------------------------------------------

    async def _send(self) -> None:
        while True:
            if waiting := await self.watcher.take():
                async with asyncio.timeout(SEND_SECONDS):
                    await self.socket.send(frame(waiting))
            if self.watcher.closing is not None:
                return
            # A large fleet has hundreds of events a second: those of this while share a frame.
            await self.watcher.pause(FRAME_SECONDS)


def malformed(error: ValidationError) -> ParsynError:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    message = f"The message is not understood: {where + ': ' if where else ''}{first['msg']}."
    return ParsynError(ErrorCode.MALFORMED, message)
