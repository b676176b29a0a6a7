"""Notifier plugins: tell a person that something happened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from parsyn.plugin.params import PluginParams


@dataclass(frozen=True)
class Notice:
    """Plain text; `url` leads to the page that it is about."""

    title: str
    body: str
    url: str | None = None


class Notifier(ABC):
    """One channel kind, constructed with the channel's validated settings."""

    name: ClassVar[str]
    title: ClassVar[str]
    Settings: ClassVar[type[PluginParams]]

    @abstractmethod
    def __init__(self, settings: PluginParams) -> None: ...

    @abstractmethod
    def send(self, notice: Notice) -> None:
        """Deliver, or raise ParsynError `unavailable` with the reason."""
