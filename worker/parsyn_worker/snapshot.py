"""What a model folder says about itself, read without torch."""

from __future__ import annotations

import json
import math
import shutil
import struct
from pathlib import Path
from typing import Any

SMALL = 32 << 20
"""Bytes up to which a file is taken for one that the hub needs itself; weights never are."""

_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"}
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
_LONGEST_HEADER = 100 << 20


def copy_small_files(source: Path, target: Path) -> None:
    """Copy config, tokenizer, chat template and licence: everything but weights."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix not in _WEIGHTS and path.stat().st_size <= SMALL:
            shutil.copyfile(path, target / path.name)


def describe(folder: Path) -> dict[str, Any]:
    """architecture, context_length, parameters and size (bytes of all files)."""
    config = _config(folder)
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else {}
    architectures = config.get("architectures") or [None]
    lengths = [part.get(key) for part in (config, text or {}) for key in _CONTEXT_KEYS]
    return {
        "architecture": architectures[0],
        "context_length": next((value for value in lengths if isinstance(value, int)), None),
        "parameters": count_parameters(folder),
        "size": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
    }


def count_parameters(folder: Path) -> int | None:
    """Elements of all safetensors files by their headers; None when a header is unreadable."""
    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            total += _elements(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
            return None
    return total or None


def _elements(path: Path) -> int:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _LONGEST_HEADER:
            raise ValueError("header too long")
        header = json.loads(file.read(length))
    return sum(
        math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__"
    )


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
