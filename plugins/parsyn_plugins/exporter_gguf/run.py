"""Merge, convert, quantise, and load the result back."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from parsyn.plugin import loading
from parsyn.plugin.task import LocalModel, TaskCancelled, TaskContext, TaskFailure, TaskOutcome
from parsyn.rows.template import load_template
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_plugins.exporter_gguf import architectures, parity
from parsyn_plugins.exporter_gguf.converter import convert
from parsyn_plugins.exporter_gguf.params import GgufParams
from parsyn_plugins.exporter_gguf.quantizer import quantize

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
)


def export(params: GgufParams, model: LocalModel, context: TaskContext) -> TaskOutcome:
    """See `Exporter.export`."""
    architecture = model.architecture or architecture_of(model.path)
    refusal = architectures.refusal(architecture)
    if refusal or architecture is None:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            refusal or "The model's config.json names no architecture.",
            advice="Choose another format or another model.",
        )
    whole, tokenizer, folder = _merge(model, context)
    prompts = parity.prompts_for(model)
    answers = parity.reference_answers(_in_32_bit(whole), tokenizer, prompts)
    del whole

    _step(context, TaskPhase.CONVERTING)
    full = context.folder / "f16.gguf"
    convert(folder, architecture, full, model.name or folder.name)
    result = context.folder / "result"
    result.mkdir()
    target = result / f"{_file_name(model)}-{params.quantization}.gguf"
    if params.quantization == "F16":
        full.rename(target)
    else:
        _step(context, TaskPhase.QUANTIZING)
        quantize(full, target, params.quantization)
        full.unlink()

    _step(context, TaskPhase.VERIFYING)
    checked = parity.compare(target, prompts, answers)
    _report(checked, params, context)
    facts = {
        "format": "gguf",
        "quantization": params.quantization,
        "size": target.stat().st_size,
        "parity": checked.as_dict(),
    }
    return TaskOutcome(result, facts)


def architecture_of(folder: Path) -> str | None:
    config = json.loads((folder / "config.json").read_bytes())
    names = config.get("architectures") or []
    return str(names[0]) if names else None


def _step(context: TaskContext, phase: TaskPhase) -> None:
    if context.cancelled():
        raise TaskCancelled
    context.phase(phase)


def _merge(model: LocalModel, context: TaskContext) -> tuple[Any, Any, Path]:
    """The whole model, its tokenizer, and a folder of it that the converter can read."""
    _step(context, TaskPhase.LOADING)
    dtype = _stored_dtype(model.path)
    whole, tokenizer = loading.load_base(
        model, device="cpu", dtype=dtype, trust_remote_code=context.trust_remote_code
    )
    folder = context.folder / "merged"
    if model.adapter:
        _step(context, TaskPhase.MERGING)
        # PEFT adds the product in 32 bit and rounds once.
        whole = loading.attach_adapter(whole, model.adapter).merge_and_unload()
        whole.save_pretrained(folder)
    else:
        folder.mkdir()
        for path in model.path.iterdir():
            if path.is_file():
                (folder / path.name).symlink_to(path.resolve())
    _bring_tokenizer(model, folder)
    return whole, tokenizer, folder


def _in_32_bit(whole: Any) -> Any:
    """Rounding in 16 bit flips near ties by itself; where memory allows, the reference has none."""
    import psutil

    size = sum(weight.numel() for weight in whole.parameters()) * 4
    return whole.float() if size < 0.5 * psutil.virtual_memory().available else whole


def _stored_dtype(folder: Path) -> Any:
    """16 bit as the weights are stored; 32-bit ones stay, the converter rounds them once."""
    import torch

    config = json.loads((folder / "config.json").read_bytes())
    name = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    return {"float32": torch.float32, "float16": torch.float16}.get(name, torch.bfloat16)


def _bring_tokenizer(model: LocalModel, folder: Path) -> None:
    for name in TOKENIZER_FILES:
        source = model.tokenizer_path / name
        if source.is_file():
            (folder / name).unlink(missing_ok=True)
            shutil.copyfile(source, folder / name)
    template = folder / "chat_template.jinja"
    template.unlink(missing_ok=True)
    template.write_text(load_template(model.tokenizer_path).source, encoding="utf-8")


def _file_name(model: LocalModel) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", model.name or model.path.name).strip("-.")
    return plain[:100] or "model"


def _report(checked: parity.Parity, params: GgufParams, context: TaskContext) -> None:
    context.log(
        f"{params.quantization}: the same next token at {checked.token_agreement:.0%} of "
        f"{checked.compared_tokens} places ({checked.verdict})."
    )
    if not checked.tokenizer_agrees:
        context.log("The exported tokenizer cuts the test prompts differently.", "warning")
    elif checked.verdict == "different":
        context.log(
            "The exported model often answers differently: prefer a larger quantization.",
            "warning",
        )
