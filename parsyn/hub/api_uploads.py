"""The HTTP side of uploads."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("uploads")
