"""The exporter as the hub and the agent see it. Torch is loaded by `export` alone."""

from __future__ import annotations

from parsyn.plugin.exporter import Exporter
from parsyn.plugin.task import LocalModel, TaskContext, TaskOutcome
from parsyn_plugins.exporter_gguf.params import GgufParams


class GgufExporter(Exporter[GgufParams]):
    name = "gguf"
    title = "GGUF (llama.cpp)"
    Params = GgufParams

    def refuses(self, architecture: str | None, params: GgufParams) -> str | None:
        from parsyn_plugins.exporter_gguf.architectures import refusal

        return refusal(architecture)

    def export(self, params: GgufParams, model: LocalModel, context: TaskContext) -> TaskOutcome:
        from parsyn_plugins.exporter_gguf.run import export

        return export(params, model, context)
