"""`/conversations` and `/compare`."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("conversations")
