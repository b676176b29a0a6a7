"""The exporter as the hub and the agent see it. Torch is loaded by `export` alone."""

from __future__ import annotations

import difflib
from typing import Literal

from pydantic import Field

from parsyn.plugin.exporter import Exporter
from parsyn.plugin.params import PluginParams
from parsyn.plugin.task import LocalModel, TaskContext, TaskOutcome

Quantization = Literal[
    "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q4_0", "Q3_K_M", "Q2_K"
]


class GgufParams(PluginParams):
    quantization: Quantization = Field(
        default="Q8_0",
        title="Quantization",
        description="Bits for each weight. F16 keeps 16, Q8_0 loses next to nothing, Q4_K_M is "
        "the usual choice for small machines.",
        json_schema_extra={"group": "Format", "order": 1},
    )


class GgufExporter(Exporter[GgufParams]):
    name = "gguf"
    title = "GGUF (llama.cpp)"
    Params = GgufParams

    def refuses(self, architecture: str | None, params: GgufParams) -> str | None:
        from parsyn_plugins.exporter_gguf.architectures import supported

        known = supported()
        if architecture is None or architecture in known:
            # What is not known yet is looked at by the export itself.
            return None
        near = difflib.get_close_matches(architecture, known, n=1, cutoff=0.8)
        hint = f" The nearest that can is {near[0]}." if near else ""
        return f"{architecture} cannot be exported to GGUF: llama.cpp does not know it.{hint}"

    def export(self, params: GgufParams, model: LocalModel, context: TaskContext) -> TaskOutcome:
        from parsyn_plugins.exporter_gguf.run import export

        return export(params, model, context)
