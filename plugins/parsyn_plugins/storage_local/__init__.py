"""Keeps bytes as files below the hub's data directory."""

from __future__ import annotations

from collections.abc import Sequence

from parsyn.plugin import hookimpl
from parsyn.plugin.storage import Storage


@hookimpl
def register_storages() -> Sequence[type[Storage]]:
    from parsyn_plugins.storage_local.storage import LocalStorage

    return [LocalStorage]
