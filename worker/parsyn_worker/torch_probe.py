"""A child that asks torch about one device: prints one JSON line, `probe.TorchFacts`."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import Any


def look(device: str) -> dict[str, Any]:
    import torch

    from parsyn.plugin.loading import cpu_has_bf16

    cuda = device.startswith("cuda")
    facts: dict[str, Any] = {"torch": torch.__version__, "cuda": torch.version.cuda}
    facts["bitsandbytes"] = find_spec("bitsandbytes") is not None
    if cuda and not torch.cuda.is_available():
        return {**facts, "error": "torch sees no CUDA device"}
    target = torch.device("cuda:0" if cuda else "cpu")
    ones = torch.ones(64, 64, dtype=torch.bfloat16, device=target)
    facts["device_ok"] = bool((ones @ ones)[0, 0].item() == 64)
    facts["bf16"] = torch.cuda.is_bf16_supported(False) if cuda else cpu_has_bf16()
    return facts


if __name__ == "__main__":
    # What torch and its libraries print may not get between the agent and the answer.
    print(json.dumps(look(sys.argv[1])))  # noqa: T201
