"""Real files copied for each test, and a small real tokenizer with its model folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

SHARED = Path(
    os.environ.get("PARSYN_SHARED_DATA", Path(__file__).parents[2].parent / "shared" / "data")
)

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_CORPUS = [
    "The quick brown fox jumps over the lazy dog. Paris is the capital of France.",
    'system user assistant tool\n<tool_call> {"name": "weather", "arguments": {}}',
    "Où est la gare ? 你好，世界。 naïve café 🙂",
]


@pytest.fixture
def shared_file(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a real training file into the test's folder."""
    if not SHARED.is_dir():
        pytest.skip(f"there are no real training files in {SHARED}")

    def copy(name: str) -> Path:
        return Path(shutil.copyfile(SHARED / name, tmp_path / name))

    return copy


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    def write_file(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Byte-level BPE with ChatML's special tokens; each byte is at least a token of its own."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    built.train_from_iterator(_CORPUS, trainer)
    built.add_tokens([AddedToken("<tool_call>", special=False)])
    return built


@pytest.fixture
def model_dir(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """A model folder as far as rows care: tokenizer, its configuration, a ChatML template."""
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "bos_token": "<|im_start|>",
        "eos_token": {"content": "<|im_end|>", "special": True},
        "pad_token": None,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(CHATML)
    return folder
