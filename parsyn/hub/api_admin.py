"""The HTTP side of admin."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("admin")
