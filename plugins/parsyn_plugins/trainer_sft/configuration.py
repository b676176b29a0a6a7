"""Our parameters as TRL's configuration. Whatever TRL would decide by itself is set here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parsyn_plugins.trainer_sft.params import SftParams
from parsyn_plugins.trainer_sft.plan import Batching, Schedule


def sft_config(
    params: SftParams,
    folder: Path,
    device: str,
    batches: Batching,
    schedule: Schedule,
    *,
    fp16: bool,
    checkpointing: bool,
) -> Any:
    """An SFTConfig that logs, evaluates and saves nothing by itself: `progress` decides that."""
    from trl import SFTConfig

    cpu = device == "cpu"
    return SFTConfig(
        output_dir=str(folder / "steps"),
        per_device_train_batch_size=batches.batch_size,
        gradient_accumulation_steps=batches.accumulation,
        max_steps=schedule.total_steps,
        learning_rate=params.resolved_learning_rate,
        lr_scheduler_type=_scheduler(params, schedule),
        warmup_steps=schedule.warmup_steps,
        weight_decay=params.weight_decay,
        max_grad_norm=params.max_grad_norm,
        optim=optimizer_name(params, device),
        seed=params.seed,
        # The weights themselves are in bf16 where that is the precision: nothing is cast.
        bf16=False,
        fp16=fp16,
        gradient_checkpointing=checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False} if checkpointing else None,
        use_cpu=cpu,
        dataloader_pin_memory=not cpu,
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        max_length=None,
        packing=False,
        logging_strategy="no",
        eval_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_nan_inf_filter=False,
        average_tokens_across_devices=False,
    )


def optimizer_name(params: SftParams, device: str) -> str:
    if params.optimizer != "auto":
        return params.optimizer
    on_gpu = device.startswith("cuda")
    return "adamw_8bit" if params.method == "qlora" and on_gpu else "adamw_torch_fused"


def _scheduler(params: SftParams, schedule: Schedule) -> str:
    # The library's `constant` ignores a warm-up that was asked for.
    if params.lr_scheduler == "constant" and schedule.warmup_steps:
        return "constant_with_warmup"
    return str(params.lr_scheduler)
