"""Answers that the model gives while it learns, to a few prompts that stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parsyn.plugin.batches import pad_id_of
from parsyn.plugin.task import LocalDataset, LocalModel, TaskContext
from parsyn.plugin.tokens import load_chat, read_examples
from parsyn.rows.messages import Example
from parsyn.rows.template import ChatTemplate, TemplateError, TemplateOrigin
from parsyn.wire.states import TaskPhase

LONGEST_PROMPT = 1024


@dataclass(frozen=True)
class SamplePrompt:
    """`messages` for people, `ids` for the model, `reference` what the dataset answers."""

    messages: list[dict[str, Any]]
    ids: list[int]
    reference: str | None


def prompts_from_rows(
    dataset: LocalDataset, numbers: Sequence[int], model: LocalModel
) -> list[SamplePrompt]:
    """The questions of these rows (places in the dataset, from 0), in order; chats only."""
    if not numbers:
        return []
    wanted, last = set(numbers), max(numbers)
    found: dict[int, SamplePrompt] = {}
    tokenizer, template = load_chat(model)
    for number, example in enumerate(read_examples(dataset)):
        if number in wanted and isinstance(example, Example):
            prompt = _of_example(example, tokenizer, template)
            if prompt:
                found[number] = prompt
        if number >= last:
            break
    return [found[number] for number in numbers if number in found]


def prompts_from_texts(texts: Sequence[str], model: LocalModel) -> list[SamplePrompt]:
    tokenizer, template = load_chat(model)
    chats = [[{"role": "user", "content": text}] for text in texts]
    found = [_of_messages(chat, None, None, tokenizer, template) for chat in chats]
    return [prompt for prompt in found if prompt]


def _of_example(example: Example, tokenizer: Any, template: ChatTemplate) -> SamplePrompt | None:
    messages: list[dict[str, Any]] = [dict(message) for message in example.messages]
    answers = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    if not answers:
        return None
    reference = str(messages[answers[-1]]["content"])
    before = messages[: answers[-1]]
    if example.plain and template.origin is TemplateOrigin.DEFAULT:
        ids = tokenizer.encode(example.plain[0], add_special_tokens=True).ids
        return _bounded(before, ids, reference)
    return _of_messages(before, example.tools, reference, tokenizer, template)


def _of_messages(
    messages: list[dict[str, Any]],
    tools: Any,
    reference: str | None,
    tokenizer: Any,
    template: ChatTemplate,
) -> SamplePrompt | None:
    try:
        text = template.render(messages, tools, add_generation_prompt=True)  # type: ignore[arg-type]
    except TemplateError:
        return None
    return _bounded(messages, tokenizer.encode(text, add_special_tokens=False).ids, reference)


def _bounded(
    messages: list[dict[str, Any]], ids: list[int], reference: str | None
) -> SamplePrompt | None:
    return SamplePrompt(messages, ids, reference) if 0 < len(ids) <= LONGEST_PROMPT else None


def answer(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[SamplePrompt],
    context: TaskContext,
    step: int,
    max_tokens: int,
) -> None:
    """Answer every prompt greedily, together, and report each as a sample of this step."""
    import torch

    context.phase(TaskPhase.EVALUATING)
    longest = max(len(prompt.ids) for prompt in prompts)
    pad = pad_id_of(tokenizer)
    device = next(model.parameters()).device
    ids = torch.full((len(prompts), longest), pad, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt.ids) :] = torch.tensor(prompt.ids)
        mask[row, longest - len(prompt.ids) :] = 1
    was_training = model.training
    model.eval()
    with torch.no_grad():
        out = model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            max_new_tokens=max_tokens,
            do_sample=False,
            pad_token_id=pad,
        )
    model.train(was_training)
    for row, prompt in enumerate(prompts):
        text = tokenizer.decode(out[row, longest:], skip_special_tokens=True)
        context.sample(step, prompt.messages, text.strip(), prompt.reference)
