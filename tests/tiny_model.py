"""A tiny random Llama with a tokenizer and chat template of its own, as a Hugging Face folder.

`python -m tests.tiny_model DIR` makes one; tests do so in a child, so that pytest's own process
stays without torch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = [
    "The quick brown fox jumps over the lazy dog, and what is the capital of France?",
    "Give three tips for staying healthy. Hello! I am an assistant, how can I help you today?",
    "0123456789 A B C D E F G H I J K L M N O P Q R S T U V W X Y Z (brackets) [more] {curly}",
]


def make(folder: Path, *, seed: int = 0, context_length: int = 512) -> Path:
    """Build it in this process: hidden 64, 2 layers, 4 heads, about 600 tokens, float32."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
        model_max_length=context_length,
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context_length,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def make_in_child(folder: Path) -> Path:
    """`make` without importing torch here."""
    root = Path(__file__).parent.parent
    subprocess.run(
        [sys.executable, "-m", "tests.tiny_model", str(folder)],
        check=True, cwd=root, capture_output=True,
    )  # fmt: skip
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]))
