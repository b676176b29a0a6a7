"""Whether the exported file says what the model says: the same next token, place by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parsyn.plugin.task import LocalModel
from parsyn.rows.template import TemplateError, load_template
from parsyn_plugins.exporter_gguf.loaded import loaded

QUESTIONS = (
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "List three colours, separated by commas.",
    "Explain in a few words what 12 * 12 is.",
)
ANSWER_TOKENS = 24
CLOSE, SAME = 0.8, 0.95


@dataclass(frozen=True)
class Parity:
    """`token_agreement` is the part of compared places where both would say the same token next,
    `tokenizer_agrees` whether both cut the prompts alike. `verdict`: same, close or different."""

    token_agreement: float
    compared_tokens: int
    tokenizer_agrees: bool

    @property
    def verdict(self) -> str:
        if not self.tokenizer_agrees or self.token_agreement < CLOSE:
            return "different"
        return "same" if self.token_agreement >= SAME else "close"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def prompts_for(model: LocalModel) -> list[str]:
    """The questions, as the model's own chat template writes them."""
    template = load_template(model.tokenizer_path)
    prompts = []
    for question in QUESTIONS:
        try:
            chat = [{"role": "user", "content": question}]
            prompts.append(template.render(chat, add_generation_prompt=True))  # type: ignore[arg-type]
        except TemplateError:
            prompts.append(question)
    return prompts


def reference_answers(model: Any, tokenizer: Any, prompts: Sequence[str]) -> list[list[int]]:
    """For each prompt its ids and the answer that the model gives greedily, in one list."""
    import torch

    found = []
    for prompt in prompts:
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            out = model.generate(
                input_ids=ids.to(model.device),
                attention_mask=torch.ones_like(ids).to(model.device),
                max_new_tokens=ANSWER_TOKENS,
                do_sample=False,
                pad_token_id=int(ids[0, 0]),
            )
        found.append([int(token) for token in out[0].tolist()])
    return found


def compare(path: Path, prompts: Sequence[str], answers: Sequence[list[int]]) -> Parity:
    """Feed the reference's own answers to the file and count where it would have said the same."""
    same = compared = 0
    alike = True
    with loaded(path, max(len(ids) for ids in answers) + 8) as exported:
        for prompt, ids in zip(prompts, answers, strict=True):
            cut = exported.tokenize(prompt)
            alike = alike and cut == ids[: len(cut)]
            said = exported.next_tokens(ids)
            start = max(1, min(len(cut), len(ids) - 1))
            pairs = list(zip(said[start - 1 : len(ids) - 1], ids[start:], strict=True))
            same += sum(left == right for left, right in pairs)
            compared += len(pairs)
    return Parity(same / max(1, compared), compared, alike)
