"""The HTTP side of keys."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("keys")
