"""The tree that a conversation's messages make: which one each of them follows."""

from __future__ import annotations

from collections.abc import Sequence

from parsyn.store.conversations import Message

ROOT = 0
"""What is stored as `parent_id` of a message that begins the conversation anew."""


class Branches:
    """`messages` are all of one conversation, in the order in which they were stored."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self._by_id = {message.id: message for message in messages}
        self._parents: dict[int, int | None] = {}
        before: int | None = None
        for message in messages:
            self._parents[message.id] = self._parent(message, before)
            before = int(message.id)

    def _parent(self, message: Message, before: int | None) -> int | None:
        if message.parent_id == ROOT:
            return None
        # Those of the time before branches name none, and follow one another.
        return message.parent_id if message.parent_id in self._by_id else before

    def get(self, message_id: int) -> Message | None:
        return self._by_id.get(message_id)

    def parent_of(self, message: Message) -> int | None:
        """The id of the message before it; None for the first one."""
        return self._parents[message.id]

    def path_to(self, message_id: int | None) -> list[Message]:
        """The messages from the beginning to this one; none for None."""
        path: list[Message] = []
        while message_id is not None:
            path.append(self._by_id[message_id])
            message_id = self._parents[message_id]
        return path[::-1]

    def newest_path(self) -> list[Message]:
        """The branch on which something was said last."""
        return self.path_to(self.messages[-1].id if self.messages else None)

    def after(self, message_id: int) -> list[Message]:
        """The messages that follow this one directly: its versions of what comes next."""
        return [one for one in self.messages if self._parents[one.id] == message_id]
