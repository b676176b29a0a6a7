"""An exported file, loaded back by llama.cpp on the CPU, answering with the next token."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason
from parsyn_plugins.exporter_gguf.quantizer import library


class LoadedFile:
    """Use `loaded`, which frees it. Prompts and answers together fit `context_tokens`."""

    def __init__(self, model: Any, context: Any, tokens: int) -> None:
        self.api = library()
        self.model, self.context, self.tokens = model, context, tokens
        self.vocabulary = self.api.llama_model_get_vocab(model)
        self.size = self.api.llama_vocab_n_tokens(self.vocabulary)

    def tokenize(self, text: str) -> list[int]:
        """The file's own tokenizer, special tokens read as such, none added."""
        raw = text.encode()
        room = (self.api.llama_token * (len(raw) + 8))()
        count = self.api.llama_tokenize(
            self.vocabulary, raw, len(raw), room, len(room), False, True
        )
        return list(room[: max(0, count)])

    def next_tokens(self, ids: Sequence[int]) -> list[int]:
        """At each place the token that the model finds most likely to come next."""
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        batch = self.api.llama_batch_init(len(ids), 0, 1)
        try:
            batch.n_tokens = len(ids)
            for place, token in enumerate(ids):
                batch.token[place], batch.pos[place] = token, place
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
                batch.logits[place] = 1
            if self.api.llama_decode(self.context, batch) != 0:
                raise _cannot_load("it fails at the first tokens")
            return [self._likeliest(place) for place in range(len(ids))]
        finally:
            self.api.llama_batch_free(batch)

    def _likeliest(self, place: int) -> int:
        logits = self.api.llama_get_logits_ith(self.context, place)
        values = np.ctypeslib.as_array(logits, shape=(self.size,))
        return int(values.argmax())


@contextmanager
def loaded(path: Path, context_tokens: int) -> Iterator[LoadedFile]:
    """Raises TaskFailure when llama.cpp cannot load the file."""
    api = library()
    options = api.llama_model_default_params()
    options.n_gpu_layers = 0
    # Repacked weights are for speed alone, and the AMX kernels behind them crash on some CPUs.
    options.use_extra_bufts = False
    model = api.llama_model_load_from_file(str(path).encode(), options)
    if not model:
        raise _cannot_load("its format is refused")
    try:
        context = api.llama_init_from_model(model, _context_options(api, context_tokens))
        if not context:
            raise _cannot_load("its context does not fit the memory")
        try:
            yield LoadedFile(model, context, context_tokens)
        finally:
            api.llama_free(context)
    finally:
        api.llama_model_free(model)


def _context_options(api: Any, tokens: int) -> Any:
    options = api.llama_context_default_params()
    options.n_ctx = options.n_batch = options.n_ubatch = ctypes.c_uint32(tokens).value
    # Its threads wait in a loop: on cores that others use too, fewer of them are faster.
    options.n_threads = options.n_threads_batch = max(1, (os.cpu_count() or 2) // 2)
    return options


def _cannot_load(why: str) -> TaskFailure:
    return TaskFailure(
        FailureReason.INTERNAL,
        f"llama.cpp cannot use the exported file: {why}.",
        advice="Try another quantization; if F16 fails too, the architecture is at fault.",
    )
