"""The bare peer of bench/chat.py: transformers' `generate` on the same folder and precision.

A process of its own that answers one line of JSON on standard output for each on standard input.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.generation.streamers import BaseStreamer

from parsyn.plugin.loading import pick_dtype


class Clock(BaseStreamer):
    """When each token came; the first call brings the prompt."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def put(self, value: Any) -> None:
        self.at.append(time.perf_counter())

    def end(self) -> None:
        pass


def main() -> None:
    folder = sys.argv[1]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=pick_dtype("cpu"))
    model.eval()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(model, tokenizer, json.loads(line))), flush=True)


def answer(model: Any, tokenizer: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Seconds to the first token (templating and tokenising too), tokens a second after it."""
    began = time.perf_counter()
    inputs = tokenizer.apply_chat_template(
        order["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    clock = Clock()
    with torch.inference_mode():
        out = model.generate(
            **inputs, max_new_tokens=order["max_tokens"], do_sample=False, streamer=clock
        )
    ids = out[0, inputs["input_ids"].shape[1] :]
    times = clock.at[1:]
    return {
        "first": times[0] - began,
        "rate": (len(times) - 1) / (times[-1] - times[0]),
        "tokens": len(times),
        "text": tokenizer.decode(ids, skip_special_tokens=True),
    }


if __name__ == "__main__":
    main()
