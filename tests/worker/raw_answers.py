"""A tiny model, two adapters for it, and what transformers' own `generate` answers with them.

`python -m tests.worker.raw_answers DIR` writes DIR/{model,other,adapter-1,adapter-2}, answers.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROMPTS = ["What is the capital of France?", "Give three tips.", "Hello! 0123"]
TOKENS = 40


def make(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from parsyn.plugin.loading import pick_dtype
    from tests import tiny_model

    tiny_model.make(folder / "model")
    tiny_model.make(folder / "other", seed=1)
    for number in (1, 2):
        _adapter(folder / "model", folder / f"adapter-{number}", number)
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    answers: dict[str, Any] = {}
    for name in ("model", "other", "adapter-1", "adapter-2"):
        base = folder / ("other" if name == "other" else "model")
        model = AutoModelForCausalLM.from_pretrained(base, dtype=pick_dtype("cpu")).eval()
        if name.startswith("adapter"):
            from peft import PeftModel

            model = PeftModel.from_pretrained(
                model, folder / name, autocast_adapter_dtype=False
            ).eval()
        with torch.inference_mode():
            answers[name] = {prompt: _answer(model, tokenizer, prompt) for prompt in PROMPTS}
    (folder / "answers.json").write_text(json.dumps(answers))


def _adapter(base: Path, folder: Path, seed: int) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    config = LoraConfig(
        r=4, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM"
    )
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(folder)


def _answer(model: Any, tokenizer: Any, prompt: str) -> str:
    chat = [{"role": "user", "content": prompt}]
    ids = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    out = model.generate(**ids, max_new_tokens=TOKENS, do_sample=False)
    return str(tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
