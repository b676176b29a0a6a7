"""A model folder of a few kilobytes that is right in every respect but its answers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 512,
}
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
README = "---\nlicense: apache-2.0\nbase_model: x\n---\n# Tiny\n"


def safetensors(tensors: dict[str, Any] | None = None, data: bytes | None = None) -> bytes:
    """A weights file; by default one tensor of 2 x 3 numbers in BF16."""
    header = tensors or {"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + (bytes(12) if data is None else data)


def tokenizer_json() -> bytes:
    """A byte-level tokenizer without merges: one token a byte."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {char: number for number, char in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names])
    return str(tokenizer.to_str()).encode()


def model_files() -> dict[str, bytes]:
    """Names and contents."""
    return {
        "config.json": json.dumps(CONFIG).encode(),
        "model.safetensors": safetensors(),
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": json.dumps({"eos_token": "<|end|>"}).encode(),
        "chat_template.jinja": TEMPLATE.encode(),
        "README.md": README.encode(),
    }


def write_folder(folder: Path, files: dict[str, bytes] | None = None) -> Path:
    """The files on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (files or model_files()).items():
        (folder / name).write_bytes(data)
    return folder
