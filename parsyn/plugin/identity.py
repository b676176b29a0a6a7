"""Identity provider plugins: sign in besides the password."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from parsyn.plugin.params import PluginParams


@dataclass(frozen=True)
class Identity:
    """Who the provider says this is. `email_verified` must be true to match an account."""

    subject: str
    email: str
    email_verified: bool
    name: str


class IdentityProvider(ABC):
    """One provider, constructed with validated settings."""

    name: ClassVar[str]
    title: ClassVar[str]
    Settings: ClassVar[type[PluginParams]]

    @abstractmethod
    def __init__(self, settings: PluginParams) -> None: ...

    @abstractmethod
    def start(self, state: str, redirect_uri: str) -> str:
        """The address to send the browser to."""

    @abstractmethod
    def finish(self, query: Mapping[str, str], redirect_uri: str) -> Identity:
        """Who came back, or ParsynError `unauthenticated`."""
