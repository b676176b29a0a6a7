"""Make the loaded model trainable by the chosen method."""

from __future__ import annotations

from typing import Any

from parsyn.plugin.loading import attach_adapter
from parsyn.plugin.task import LocalModel, TaskContext, TaskFailure
from parsyn.wire.states import FailureReason
from parsyn_plugins.trainer_sft.params import SftParams

HEADS = frozenset({"lm_head", "embed_out", "output_layer"})


def adapt(model: Any, params: SftParams, source: LocalModel, context: TaskContext) -> Any:
    """A new adapter, the given one taken up again, or every weight."""
    if params.method == "full":
        return _all_weights(model, source)
    if source.adapter:
        context.log("The model is an adapter: it is trained further, with its own rank and layers.")
        return attach_adapter(model, source.adapter, trainable=True)
    return _new_adapter(model, params)


def _all_weights(model: Any, source: LocalModel) -> Any:
    if source.adapter:
        model = attach_adapter(model, source.adapter).merge_and_unload()
    for weight in model.parameters():
        weight.requires_grad_(True)
    return model


def _new_adapter(model: Any, params: SftParams) -> Any:
    import torch
    from peft import LoraConfig, get_peft_model

    targets = params.target_modules
    heads = HEADS.intersection(targets if targets != "all-linear" else ())
    if heads:
        raise _user_error(f"`{min(heads)}` is the head, which is not adapted.")
    config = LoraConfig(
        r=params.lora_r,
        lora_alpha=params.lora_alpha,
        lora_dropout=params.lora_dropout,
        target_modules=targets if targets == "all-linear" else list(targets),
        use_dora=params.dora,
        use_rslora=params.rslora,
        bias="none",
        task_type="CAUSAL_LM",
    )
    try:
        # Under fp16 the adapter itself stays in 32 bit, for the gradient scaler.
        half = model.dtype == torch.float16
        return get_peft_model(model, config, autocast_adapter_dtype=half)
    except ValueError as error:
        raise _user_error(str(error).splitlines()[0][:300]) from error


def _user_error(message: str) -> TaskFailure:
    return TaskFailure(
        FailureReason.USER_ERROR,
        f"The adapter cannot be made: {message}",
        advice='Set target_modules to "all-linear", or to names of linear layers of this model.',
    )
