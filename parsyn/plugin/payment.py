"""Payment plugins: buy credits. Money is integers of the currency's smallest unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from parsyn.plugin.params import PluginParams


@dataclass(frozen=True)
class Paid:
    """A verified payment; `reference` is unique, so that the same one twice counts once."""

    reference: str
    user_id: int
    credits: int


class Payment(ABC):
    """One payment service, constructed with validated settings."""

    name: ClassVar[str]
    Settings: ClassVar[type[PluginParams]]

    @abstractmethod
    def __init__(self, settings: PluginParams) -> None: ...

    @abstractmethod
    def checkout(self, user_id: int, pack_id: str, credits: int, amount: int, currency: str) -> str:
        """The address of a checkout page."""

    @abstractmethod
    def verify(self, headers: Mapping[str, str], body: bytes) -> Paid | None:
        """Check a webhook's signature; None when it is no payment. Raises when forged."""
