"""`/v1`: the API that the official OpenAI clients speak."""

from __future__ import annotations

from parsyn.hub.routing import Api

api = Api("openai", prefix="/v1")
