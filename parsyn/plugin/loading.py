"""Load a local model, its tokenizer and its adapter. Torch is imported when a function runs.

Used by every plugin that needs weights and by the agent's inference process, so that the model
that chats is loaded as the model that was trained.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from parsyn.plugin.task import LocalModel, TaskFailure
from parsyn.wire.states import FailureReason

Precision = Literal["auto", "bf16", "fp16", "no"]
Quantization = Literal["4bit", "8bit"]

REMOTE_CODE_KEYS = ("auto_map", "trust_remote_code", "_attn_implementation")
CONFIG_FILES = ("config.json", "tokenizer_config.json", "generation_config.json")
LARGEST_CONFIG = 32 << 20


def load_base(
    model: LocalModel,
    *,
    device: str,
    dtype: Any,
    quantization: Quantization | None = None,
    trust_remote_code: bool = False,
) -> tuple[Any, Any]:
    """The base model on `device` in `dtype` (a torch.dtype), in eval mode, and the tokenizer.

    The adapter is not applied: see `attach_adapter`; but the tokenizer is the adapter's where
    it has one. Raises TaskFailure `model_unavailable` for what cannot or must not be loaded.
    """
    refuse_remote_code(model.path, trust_remote_code)
    if model.adapter:
        refuse_remote_code(model.adapter, trust_remote_code)
    _require_safetensors(model.path)
    if quantization:
        require_quantization(device, quantization)
    transformers = _transformers()
    options: dict[str, Any] = {
        "dtype": dtype,
        "local_files_only": True,
        "use_safetensors": True,
        "trust_remote_code": trust_remote_code,
    }
    if quantization:
        options["quantization_config"] = _quantization_config(quantization, dtype)
    if quantization or device != "cpu":
        options["device_map"] = {"": device}
    try:
        loaded = transformers.AutoModelForCausalLM.from_pretrained(model.path, **options)
    except Exception as error:  # safetensors and model code raise classes of their own
        if is_out_of_memory(error):
            raise
        raise _unavailable(model, error) from error
    loaded.eval()
    return loaded, load_tokenizer(model, trust_remote_code=trust_remote_code)


def load_tokenizer(model: LocalModel, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer that counts for this model, chat template included."""
    refuse_remote_code(model.tokenizer_path, trust_remote_code)
    try:
        return _transformers().AutoTokenizer.from_pretrained(
            model.tokenizer_path, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except Exception as error:  # so does the tokenizer's library
        raise _unavailable(model, error) from error


def attach_adapter(model: Any, folder: Path, *, trainable: bool = False) -> Any:
    """The model with the PEFT adapter in `folder` applied, in the base's precision."""
    refuse_remote_code(folder, False)
    if not (folder / "adapter_model.safetensors").is_file():
        raise TaskFailure(
            FailureReason.MODEL_UNAVAILABLE,
            "The adapter has no adapter_model.safetensors: only safetensors are loaded.",
        )
    from peft import PeftModel

    try:
        adapted = PeftModel.from_pretrained(
            model,
            str(folder),
            is_trainable=trainable,
            autocast_adapter_dtype=False,
            torch_device=str(model.device),
        )
    except Exception as error:  # as above
        if is_out_of_memory(error):
            raise
        raise TaskFailure(
            FailureReason.MODEL_UNAVAILABLE,
            "The adapter does not fit its base model.",
            line=_first_line(error),
            advice="Check that the adapter was trained on this base model.",
        ) from error
    return adapted if trainable else adapted.eval()


def pick_dtype(device: str, mixed_precision: Precision = "auto") -> Any:
    """The torch.dtype to load and compute in. `auto`: bf16 where the device computes in it,
    else fp16 on CUDA, else float32. Raises TaskFailure `user_error` for what it cannot do."""
    import torch

    if mixed_precision == "no":
        return torch.float32
    if device.startswith("cuda"):
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        if mixed_precision == "bf16" and not native:
            raise TaskFailure(
                FailureReason.USER_ERROR,
                f"{torch.cuda.get_device_name()} does not compute in bf16.",
                advice='Set mixed_precision to "auto" or "fp16".',
            )
        return torch.float16 if mixed_precision == "fp16" or not native else torch.bfloat16
    if mixed_precision == "fp16":
        raise TaskFailure(
            FailureReason.USER_ERROR,
            "Training in fp16 needs a GPU, and this agent works on the CPU.",
            advice='Set mixed_precision to "auto".',
        )
    return torch.bfloat16 if mixed_precision == "bf16" or cpu_has_bf16() else torch.float32


def precision_of(dtype: Any) -> Literal["bf16", "fp16", "no"]:
    """The word for a dtype of `pick_dtype`."""
    import torch

    if dtype == torch.bfloat16:
        return "bf16"
    return "fp16" if dtype == torch.float16 else "no"


def cpu_has_bf16() -> bool:
    """Whether the CPU multiplies bf16 itself (AVX512-BF16 or AMX, or ARM's BF16)."""
    import torch

    asked = [
        getattr(torch.cpu, name, None)
        for name in (
            "_is_avx512_bf16_supported",
            "_is_amx_tile_supported",
            "_is_arm_bf16_supported",
        )
    ]
    return any(bool(ask()) for ask in asked if ask is not None)


def require_quantization(device: str, quantization: Quantization) -> None:
    """Raise TaskFailure `user_error` with the reason where 4 or 8 bit does not work.

    It is tried on one small layer: what a version of bitsandbytes can do on which device changes.
    """
    import torch

    try:
        import bitsandbytes

        linear = bitsandbytes.nn
        layer = (
            linear.Linear4bit(64, 64, bias=False, compute_dtype=torch.float32)
            if quantization == "4bit"
            else linear.Linear8bitLt(64, 64, bias=False, has_fp16_weights=False)
        ).to(device)
        layer(torch.ones((2, 64), device=device))
    except Exception as error:  # a native library fails in its own ways
        raise TaskFailure(
            FailureReason.USER_ERROR,
            f"This agent cannot load a base model in {quantization}: bitsandbytes does not work "
            f"on its {'GPU' if device.startswith('cuda') else 'CPU'}.",
            line=_first_line(error),
            advice="Use method lora, or an agent with an NVIDIA GPU and the `cuda` extra.",
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA's own error, and the RuntimeError in which the CPU allocator says the same."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "not enough memory" in text or "can't allocate memory" in text or "out of memory" in text
    )


def context_length_of(folder: Path) -> int | None:
    """The longest sequence, in tokens, that the model's config.json says it was made for."""
    config = _read_config(folder / "config.json")
    for part in (config, config.get("text_config") if isinstance(config, dict) else None):
        value = part.get("max_position_embeddings") if isinstance(part, dict) else None
        if isinstance(value, int) and value > 0:
            return value
    return None


def refuse_remote_code(folder: Path, allowed: bool) -> None:
    """Raise TaskFailure when a config asks to run code or to replace attention by name."""
    for name in (*CONFIG_FILES, "adapter_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        for key in _keys(_read_config(path)):
            if not allowed and key.startswith(REMOTE_CODE_KEYS):
                raise TaskFailure(
                    FailureReason.MODEL_UNAVAILABLE,
                    f"{name} has the key `{key}`, which would run the model's own code.",
                    advice="Choose a model without it. The owner of an agent who trusts it can set "
                    "TRUST_REMOTE_CODE=true there.",
                )


def _read_config(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise ValueError("it is too large")
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise TaskFailure(
            FailureReason.MODEL_UNAVAILABLE,
            f"{path.name} of the model is not readable: {_first_line(error)}.",
        ) from error


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            # transformers writes `"_attn_implementation_autoset": false` and nulls by itself.
            if inner not in (None, False):
                yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def _require_safetensors(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise TaskFailure(FailureReason.MODEL_UNAVAILABLE, "The model has no config.json.")
    if not any(folder.glob("*.safetensors")):
        raise TaskFailure(
            FailureReason.MODEL_UNAVAILABLE,
            "The model has no safetensors file: other weights are not loaded.",
            advice="Choose a model that offers safetensors, or convert it first.",
        )


def _quantization_config(quantization: Quantization, dtype: Any) -> Any:
    from transformers import BitsAndBytesConfig

    if quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def _transformers() -> Any:
    # Nothing here may reach for the network: what is loaded is local, always.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import transformers

    # Advice of libraries to their programmers is no line for the log of a task.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _unavailable(model: LocalModel, error: BaseException) -> TaskFailure:
    return TaskFailure(
        FailureReason.MODEL_UNAVAILABLE,
        f"The model {model.name or model.path.name} could not be loaded.",
        line=_first_line(error),
        advice="Check that its files are whole and that its architecture is supported.",
    )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:500]}" if lines else type(error).__name__
