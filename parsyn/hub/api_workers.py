"""Workers and the keys with which they enrol."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("workers")
