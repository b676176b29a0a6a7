"""Storage plugins: where bytes live. Keys are relative POSIX paths without `..`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from parsyn.plugin.params import PluginParams


@dataclass(frozen=True)
class ObjectInfo:
    """Size in bytes; `sha256` is lower-case hex."""

    key: str
    size: int
    sha256: str | None = None


class Storage(ABC):
    """One place for bytes. Synchronous; constructed with validated settings.

    Objects are immutable once put: `put` of an existing key replaces it atomically, a reader never
    sees half an object. Missing keys raise ParsynError `not_found`, a full disk `unavailable`.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[PluginParams]]

    @abstractmethod
    def __init__(self, settings: PluginParams, data_dir: Path) -> None:
        """`data_dir` is the hub's data directory, for storages that live below it."""

    @abstractmethod
    def put(self, key: str, chunks: Iterable[bytes]) -> ObjectInfo:
        """Store atomically; the digest is computed on the way. Memory stays flat."""

    @abstractmethod
    def get(self, key: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Chunks of at most 1 MiB."""

    @abstractmethod
    def stat(self, key: str) -> ObjectInfo:
        """Size; the digest where it is known without reading."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove; a missing key is no error."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object below `prefix`, in key order."""

    @abstractmethod
    def as_file(self, key: str) -> AbstractContextManager[Path]:
        """A local path to read from while the context is open; never to be written to."""

    @abstractmethod
    def concatenate(self, keys: Iterable[str], target: str) -> ObjectInfo:
        """Join objects into `target` in order (a multipart upload's end) and remove the parts."""

    def presign(self, key: str, method: str, seconds: int) -> str | None:
        """A URL that lets its bearer GET or PUT this one object; None where the hub must serve."""
        return None

    @abstractmethod
    def check(self) -> None:
        """Raise ParsynError `unavailable` with a sentence when bytes cannot be stored now."""
