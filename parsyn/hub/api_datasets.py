"""The HTTP side of datasets."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("datasets")
