"""Models in the memory of the inference child: a few bases, each with its adapters."""

from __future__ import annotations

import gc
import inspect
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parsyn.plugin import loading
from parsyn.plugin.task import LocalModel
from parsyn.rows.template import ChatTemplate, load_template
from parsyn_worker.events import InferSettings

MOST_ADAPTERS = 8
"""Adapters that stay attached to one base."""


@dataclass
class Voice:
    """The tokenizer side of a model: how text becomes ids, and which ids end an answer."""

    tokenizer: Any
    template: ChatTemplate
    ends: frozenset[int]


@dataclass
class Base:
    """One base in memory. `adapters` maps folders to names of attached adapters.

    `active` is the adapter through which a forward pass goes, None where it goes through none.
    `users` counts the answers that are being made, by adapter folder (None: without).
    """

    model: Any
    context: int | None
    cache_name: str = "cache"
    adapters: OrderedDict[Path, str] = field(default_factory=OrderedDict)
    voices: dict[Path, Voice] = field(default_factory=dict)
    active: str | None = None
    users: Counter[Path | None] = field(default_factory=Counter)
    model_ids: set[int] = field(default_factory=set)

    def new_cache(self) -> Any:
        """Keys and values of one answer; a forward pass adds to it in place."""
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config)

    @property
    def idle(self) -> bool:
        return self.users.total() == 0


class Shelf:
    """Loads on demand. A base that answers something now is not put away."""

    def __init__(self, settings: InferSettings) -> None:
        self.settings = settings
        self._bases: OrderedDict[Path, Base] = OrderedDict()

    def base(self, model: LocalModel, model_id: int) -> Base:
        """The base of `model`, with its adapter attached (but not chosen)."""
        base = self._bases.get(model.path)
        if base is None:
            self._make_room()
            base = self._load(model)
            self._bases[model.path] = base
        self._bases.move_to_end(model.path)
        base.model_ids.add(model_id)
        if model.adapter:
            self._attach(base, model.adapter)
        _quicken_head(base.model)
        return base

    def holds(self, model: LocalModel) -> bool:
        """Whether `base` would answer at once."""
        base = self._bases.get(model.path)
        return base is not None and (model.adapter is None or model.adapter in base.adapters)

    def voice(self, base: Base, model: LocalModel) -> Voice:
        folder = model.tokenizer_path
        if folder not in base.voices:
            trust = self.settings.trust_remote_code
            tokenizer = loading.load_tokenizer(model, trust_remote_code=trust)
            template = load_template(folder)
            ends = _ends(base.model, tokenizer, template)
            base.voices[folder] = Voice(tokenizer, template, ends)
        return base.voices[folder]

    def choose(self, base: Base, adapter: Path | None) -> None:
        """Let the next forward pass go through this adapter, or with None through none."""
        name = base.adapters[adapter] if adapter else None
        if name == base.active or not base.adapters:
            return
        tuner = base.model.base_model
        if name is None:
            tuner.disable_adapter_layers()
        else:
            if base.active is None:
                tuner.enable_adapter_layers()
            base.model.set_adapter(name, inference_mode=True)
        base.active = name

    def unload(self, model_id: int | None) -> None:
        """Free the bases that a model uses, or with None all that answer nothing now."""
        for path, base in list(self._bases.items()):
            if base.idle and (model_id is None or model_id in base.model_ids):
                del self._bases[path]
        self._free()

    def _load(self, model: LocalModel) -> Base:
        settings = self.settings
        quantization: Any = None if settings.quantization == "none" else settings.quantization
        loaded, _ = loading.load_base(
            model,
            device=settings.device,
            dtype=loading.pick_dtype(settings.device),
            quantization=quantization,
            trust_remote_code=settings.trust_remote_code,
        )
        return Base(loaded, _context(loaded), _cache_name(loaded))

    def _attach(self, base: Base, folder: Path) -> None:
        if folder in base.adapters:
            base.adapters.move_to_end(folder)
        elif not base.adapters:
            base.model = loading.attach_adapter(base.model, folder)
            base.adapters[folder] = base.active = "default"
        else:
            self._detach_idle(base)
            loading.refuse_remote_code(folder, False)
            name = f"adapter-{time.monotonic_ns()}"
            base.model.load_adapter(
                str(folder), name, autocast_adapter_dtype=False, torch_device=self.settings.device
            )
            base.adapters[folder] = name

    def _detach_idle(self, base: Base) -> None:
        """PEFT cannot be without any adapter, so that the last one always stays."""
        idle = [folder for folder in base.adapters if not base.users[folder]]
        while len(base.adapters) >= MOST_ADAPTERS and len(idle) > 1:
            folder = idle.pop(0)
            name = base.adapters.pop(folder)
            if base.active == name:
                self.choose(base, next(reversed(base.adapters)))
            base.voices.pop(folder, None)
            base.model.delete_adapter(name)

    def _make_room(self) -> None:
        while len(self._bases) >= self.settings.max_models:
            idle = [path for path, base in self._bases.items() if base.idle]
            if not idle:
                return
            del self._bases[idle[0]]
            self._free()

    def _free(self) -> None:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _quicken_head(model: Any) -> None:
    """On the CPU torch multiplies one position of many by a frozen matrix as a batch, and copies
    the whole matrix for it (0.1 s of a first token); by one that may learn it does not. Nothing
    learns here: answers are made in inference mode."""
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    if weight is not None and weight.is_floating_point():
        weight.requires_grad_(True)


def _context(model: Any) -> int | None:
    config = model.config.get_text_config()
    length = getattr(config, "max_position_embeddings", None)
    return length if isinstance(length, int) else None


def _cache_name(model: Any) -> str:
    """transformers renamed the argument in 5.2x."""
    parameters = inspect.signature(type(model).forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def _ends(model: Any, tokenizer: Any, template: ChatTemplate) -> frozenset[int]:
    """Ids that end an answer: the model's own, the tokenizer's, and what closes a turn."""
    own = model.generation_config.eos_token_id if model.generation_config else None
    ids = set(own if isinstance(own, list) else [own])
    ids.add(tokenizer.eos_token_id)
    ids.add(_turn_end(tokenizer, template))
    return frozenset(id for id in ids if isinstance(id, int))


def _turn_end(tokenizer: Any, template: ChatTemplate) -> int | None:
    """The special token that the template writes right behind what an assistant says."""
    said = "parsyn"
    chat: Any = [{"role": "user", "content": "?"}, {"role": "assistant", "content": said}]
    try:
        rest = template.render(chat).rpartition(said)[2]
    except Exception:  # a template may demand roles that this chat lacks
        return None
    for text, id in tokenizer.get_added_vocab().items():
        if text and rest.startswith(text):
            return int(id)
    return None
