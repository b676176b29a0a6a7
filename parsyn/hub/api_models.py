"""The HTTP side of models."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("models")
