"""The folder that a run leaves: weights, tokenizer, and the chat template that trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from parsyn.plugin.task import LocalModel
from parsyn.rows.template import load_template
from parsyn_plugins.trainer_sft.checkpoints import save_weights

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)


def write_result(model: Any, source: LocalModel, folder: Path) -> Path:
    """`folder`, filled. The tokenizer's files are the base's own, byte for byte."""
    folder.mkdir(parents=True)
    save_weights(model, folder, base_name=source.name or source.path.name)
    for name in TOKENIZER_FILES:
        path = source.tokenizer_path / name
        if path.is_file():
            shutil.copyfile(path, folder / name)
    template = folder / "chat_template.jinja"
    if not template.exists():
        # A model without one was trained with the default: it must chat with that too.
        template.write_text(load_template(source.tokenizer_path).source, encoding="utf-8")
    if not hasattr(model, "peft_config"):
        _clean_config(folder / "config.json")
    return folder


def _clean_config(path: Path) -> None:
    config = json.loads(path.read_bytes())
    config.pop("_name_or_path", None)
    config["use_cache"] = True
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
