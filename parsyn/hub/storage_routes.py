"""Bytes of tasks and chats, to and from agents that hold a signed ticket."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("storage", prefix="")
