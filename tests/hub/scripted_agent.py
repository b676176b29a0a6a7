"""An agent that speaks the real protocol over a real socket and answers chats as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from parsyn.wire.states import WorkerType
from parsyn.wire.worker import (
    Chat,
    ChatCancel,
    ChatDone,
    Hello,
    HubMessage,
    Timings,
    Token,
    Usage,
    Welcome,
    hub_messages,
)

DEADLINE = 10.0
Script = Callable[["ScriptedAgent", Chat], Awaitable[None]]


class ScriptedAgent:
    """`script` runs for each chat. `chats` and `cancelled` are what the hub sent."""

    def __init__(self, url: str, key: str, script: Script, **hello: Any) -> None:
        self.url = url.replace("http://", "ws://") + "/ws/worker"
        self.key = key
        self.script = script
        self.hello = Hello(version="0", **{"worker_type": WorkerType.BOTH, **hello})
        self.chats: list[Chat] = []
        self.others: list[HubMessage] = []
        self._cancelled: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> ScriptedAgent:
        headers = {"Authorization": f"Bearer {self.key}"}
        self.socket: ClientConnection = await connect(
            self.url, additional_headers=headers, compression=None, proxy=None
        )
        await self.socket.send(self.hello.model_dump_json())
        async with asyncio.timeout(DEADLINE):
            welcome = hub_messages.validate_json(await self.socket.recv())
        assert isinstance(welcome, Welcome)
        self.welcome = welcome
        self._spawn(self._listen())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.vanish()

    async def vanish(self) -> None:
        """Go away in the middle of whatever it is."""
        await self.socket.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def say(self, chat: Chat, *pieces: str) -> None:
        for n, piece in enumerate(pieces, 1):
            await self._send(Token(chat_id=chat.chat_id, n=n, text=piece))

    async def phase(self, chat: Chat, phase: Any, **progress: int) -> None:
        await self._send(Token(chat_id=chat.chat_id, n=0, phase=phase, **progress))

    async def end(self, chat: Chat, reason: Any = "stop", tokens: int = 3, **more: Any) -> None:
        usage = Usage(prompt_tokens=5, completion_tokens=tokens)
        timings = Timings(first_token_seconds=0.1, total_seconds=0.2, tokens_per_second=20.0)
        await self._send(
            ChatDone(
                chat_id=chat.chat_id, finish_reason=reason, usage=usage, timings=timings, **more
            )
        )

    async def told_to_stop(self, chat_id: str) -> None:
        """Wait until the hub cancels this chat."""
        async with asyncio.timeout(DEADLINE):
            await self._cancel_of(chat_id).wait()

    def was_told_to_stop(self, chat_id: str) -> bool:
        return self._cancel_of(chat_id).is_set()

    async def _send(self, message: Token | ChatDone) -> None:
        await self.socket.send(message.model_dump_json())

    async def _listen(self) -> None:
        async for raw in self.socket:
            message = hub_messages.validate_json(raw)
            if isinstance(message, Chat):
                self.chats.append(message)
                self._spawn(self.script(self, message))
            elif isinstance(message, ChatCancel):
                self._cancel_of(message.chat_id).set()
            else:
                self.others.append(message)

    def _cancel_of(self, chat_id: str) -> asyncio.Event:
        return self._cancelled.setdefault(chat_id, asyncio.Event())

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def echo(agent: ScriptedAgent, chat: Chat) -> None:
    """Answers with the last message, word by word."""
    await agent.phase(chat, "generating")
    words = chat.messages[-1]["content"].split(" ")
    pieces = ["Echo:", *(f" {word}" for word in words)]
    await agent.say(chat, *pieces)
    await agent.end(chat, tokens=len(pieces))


async def until_stopped(agent: ScriptedAgent, chat: Chat) -> None:
    """Begins, and ends only when it is told to."""
    await agent.say(chat, "Once", " upon")
    await agent.told_to_stop(chat.chat_id)
    await agent.end(chat, "cancelled", tokens=2)
