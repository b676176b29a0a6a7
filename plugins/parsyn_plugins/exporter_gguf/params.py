"""What an export to GGUF may be told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parsyn.plugin.params import PluginParams

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
