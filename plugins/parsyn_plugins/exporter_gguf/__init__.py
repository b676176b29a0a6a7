"""Export to GGUF, the format of llama.cpp and what is built on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsyn.plugin import hookimpl
from parsyn.plugin.exporter import Exporter


@hookimpl
def register_exporters() -> Sequence[type[Exporter[Any]]]:
    from parsyn_plugins.exporter_gguf.exporter import GgufExporter

    return [GgufExporter]
