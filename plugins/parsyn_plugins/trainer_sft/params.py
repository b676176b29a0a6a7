"""Every parameter of supervised fine-tuning. Imports no torch: the hub reads this."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from parsyn.plugin.params import PluginParams
from parsyn_plugins.trainer_sft.fields import (
    AutoCount,
    AutoFlag,
    AutoInterval,
    AutoRate,
    AutoSplit,
    Count,
    Number,
    Rank,
    Whole,
    in_words,
    setting,
)

BASIC = "Training"
DATA = "Data"
ADAPTER = "Adapter"
OPTIMIZER = "Optimizer"
MEMORY = "Speed and memory"
PROGRESS = "Evaluation and saving"

Method = Literal["lora", "qlora", "full"]
Scheduler = Literal[
    "cosine",
    "linear",
    "constant",
    "constant_with_warmup",
    "cosine_with_restarts",
    "polynomial",
    "inverse_sqrt",
]
Optimizer = Literal[
    "auto",
    "adamw_torch_fused",
    "adamw_torch",
    "adamw_8bit",
    "paged_adamw_8bit",
    "paged_adamw_32bit",
    "adafactor",
    "sgd",
]
GPU_ONLY_OPTIMIZERS = frozenset({"adamw_8bit", "paged_adamw_8bit", "paged_adamw_32bit"})
TargetModules = Annotated[
    Literal["all-linear"]
    | Annotated[
        tuple[Annotated[str, Field(pattern=r"^[\w.]+$")], ...], Field(min_length=1, max_length=100)
    ],
    in_words('must be "all-linear" or a list of layer names such as ["q_proj", "v_proj"].'),
]
SamplePrompts = Annotated[
    Annotated[int, Field(ge=0, le=10)]
    | Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=8000)], ...], Field(max_length=10)
    ],
    in_words("must be a number from 0 to 10, or a list of up to 10 prompts."),
]


class SftParams(PluginParams):
    """Order and groups are those of the form; `advanced` ones are folded away."""

    method: Method = setting(
        "lora",
        "Method",
        "lora trains a small adapter; qlora the same on a base in 4 bit; full trains every weight.",
        BASIC,
        aliases=["use_peft"],
    )
    epochs: Number = setting(
        3.0,
        "Epochs",
        "How often the whole dataset is seen.",
        BASIC,
        aliases=["num_epochs", "num_train_epochs", "n_epochs"],
        gt=0,
        le=1000,
    )
    learning_rate: AutoRate = setting(
        "auto",
        "Learning rate",
        "Auto is 2e-4 for adapters and 1e-5 for full training.",
        BASIC,
        aliases=["lr"],
    )
    batch_size: AutoCount = setting(
        "auto",
        "Batch size",
        "Rows at a time on the device. Auto takes what fits; the effective batch stays the same.",
        BASIC,
        aliases=["micro_batch_size", "per_device_train_batch_size"],
        unit="rows",
    )
    max_seq_length: AutoCount = setting(
        "auto",
        "Longest sequence",
        "Longer rows are cut. Auto is 2048, or the model's context where that is shorter.",
        BASIC,
        aliases=["cutoff_len", "sequence_len", "max_length"],
        unit="tokens",
    )

    train_on: Literal["completions", "all", "last_turn"] = setting(
        "completions",
        "Learn from",
        "completions: the assistant's answers; last_turn: only the last one; all: every token.",
        DATA,
        aliases=["train_on_inputs", "train_on_prompt", "train_on_completions"],
    )
    validation_split: AutoSplit = setting(
        "auto",
        "Held back for validation",
        "A part of the rows (0.05) or a number of rows. Auto is 0.05 from 100 rows on, when no "
        "validation dataset is given.",
        DATA,
        aliases=["val_size", "val_set_size"],
    )
    packing: AutoFlag = setting(
        "auto",
        "Pack short rows together",
        "Faster, and changes nothing else: rows never see one another. Auto packs where attention "
        "gains by it and the model is proven to keep rows apart, and else puts rows of like length "
        "into one batch.",
        DATA,
        aliases=["sample_packing"],
        advanced=True,
    )
    seed: Whole = setting(42, "Seed", "The same seed gives the same run.", DATA, advanced=True)

    lora_r: Rank = setting(16, "Rank", "Size of the adapter.", ADAPTER, aliases=["lora_rank"])
    lora_alpha: Number = setting(
        32.0, "Alpha", "Weight of the adapter, by custom twice the rank.", ADAPTER, gt=0, le=65536
    )
    lora_dropout: Number = setting(
        0.0, "Dropout", "A part of the adapter's input dropped in training.", ADAPTER, ge=0, lt=1
    )
    target_modules: TargetModules = setting(
        "all-linear",
        "Adapted layers",
        "all-linear is every linear layer but the head; or a list of names such as q_proj.",
        ADAPTER,
        aliases=["lora_target"],
        advanced=True,
    )
    dora: bool = setting(
        False,
        "DoRA",
        "Learns direction and size apart: slower, at low ranks often better.",
        ADAPTER,
        aliases=["use_dora"],
        advanced=True,
    )
    rslora: bool = setting(
        False,
        "Rank-stabilised LoRA",
        "Scales by the root of the rank: for high ranks.",
        ADAPTER,
        aliases=["use_rslora"],
        advanced=True,
    )

    gradient_accumulation_steps: AutoCount = setting(
        "auto",
        "Gradient accumulation",
        "Batches for each update. Auto makes an effective batch of 16 rows.",
        OPTIMIZER,
        aliases=["grad_accumulation"],
        advanced=True,
    )
    max_steps: Count | None = setting(
        None, "Most steps", "Ends the run early, whatever the epochs.", OPTIMIZER, advanced=True
    )
    lr_scheduler: Scheduler = setting(
        "cosine",
        "Learning rate schedule",
        "How the learning rate moves over the run.",
        OPTIMIZER,
        aliases=["lr_scheduler_type"],
        advanced=True,
    )
    warmup_ratio: Number = setting(
        0.03,
        "Warm-up",
        "The part of the run in which the learning rate rises.",
        OPTIMIZER,
        advanced=True,
        ge=0,
        lt=1,
    )
    warmup_steps: Whole | None = setting(
        None, "Warm-up steps", "In steps, instead of a part of the run.", OPTIMIZER, advanced=True
    )
    weight_decay: Number = setting(
        0.01, "Weight decay", "Pulls weights towards zero.", OPTIMIZER, advanced=True, ge=0, le=1
    )
    max_grad_norm: Number = setting(
        1.0, "Gradient clipping", "0 clips nothing.", OPTIMIZER, advanced=True, ge=0, le=1000
    )
    optimizer: Optimizer = setting(
        "auto",
        "Optimizer",
        "Auto is adamw_torch_fused, and adamw_8bit for qlora on a GPU.",
        OPTIMIZER,
        aliases=["optim"],
        advanced=True,
    )

    mixed_precision: Literal["auto", "bf16", "fp16", "no"] = setting(
        "auto",
        "Precision",
        "Auto is bf16 where the device has it, else fp16 on CUDA, else 32 bit.",
        MEMORY,
        aliases=["bf16", "fp16"],
        advanced=True,
    )
    quantization: Literal["4bit", "8bit"] | None = setting(
        None,
        "Base weights in",
        "Loads the frozen base in fewer bits, where the agent can. qlora means 4bit.",
        MEMORY,
        aliases=["load_in_4bit", "load_in_8bit"],
        advanced=True,
    )
    gradient_checkpointing: AutoFlag = setting(
        "auto",
        "Gradient checkpointing",
        "Less memory, about a fifth slower. Auto turns it on only where it is needed.",
        MEMORY,
        advanced=True,
    )

    eval_steps: AutoInterval = setting(
        "auto",
        "Evaluate every",
        "Auto is about 20 times in the run.",
        PROGRESS,
        unit="steps",
        advanced=True,
    )
    save_steps: AutoInterval = setting(
        "auto",
        "Save every",
        "Auto saves with each evaluation.",
        PROGRESS,
        unit="steps",
        advanced=True,
    )
    logging_steps: AutoInterval = setting(
        "auto",
        "Log every",
        "Auto is each step, in long runs about 1000 times.",
        PROGRESS,
        unit="steps",
        advanced=True,
    )
    early_stopping_patience: Count | None = setting(
        None,
        "Stop early after",
        "Ends the run when this many evaluations in a row brought no better validation loss.",
        PROGRESS,
        aliases=["early_stopping_steps"],
        unit="evaluations",
    )
    save_total_limit: Count = setting(
        3, "Checkpoints kept", "Besides the best one.", PROGRESS, advanced=True
    )
    load_best_at_end: AutoFlag = setting(
        "auto",
        "Keep the best",
        "The result is the best checkpoint by validation loss, not the last one.",
        PROGRESS,
        aliases=["load_best_model_at_end"],
        advanced=True,
    )
    sample_prompts: SamplePrompts = setting(
        3,
        "Sample answers",
        "How many validation rows are answered at each evaluation, or a list of prompts.",
        PROGRESS,
        advanced=True,
    )
    sample_tokens: Annotated[int, Field(ge=1, le=1024)] = setting(
        64, "Length of a sample answer", "At most.", PROGRESS, unit="tokens", advanced=True
    )
    hub_push: str | None = setting(
        None, "Push to the Hub", "A repository id on the Hugging Face Hub.", PROGRESS, advanced=True
    )
    report_to: str | tuple[str, ...] | None = setting(
        None, "Report to", "Other trackers: wandb, mlflow, tensorboard.", PROGRESS, advanced=True
    )

    @property
    def resolved_learning_rate(self) -> float:
        if self.learning_rate != "auto":
            return self.learning_rate
        return 1e-5 if self.method == "full" else 2e-4

    @property
    def base_quantization(self) -> Literal["4bit", "8bit"] | None:
        return "4bit" if self.method == "qlora" else self.quantization

    @field_validator("quantization")
    @classmethod
    def _fits_the_method(cls, value: str | None, info: ValidationInfo) -> str | None:
        method = info.data.get("method")
        if value and method == "full":
            raise ValueError(
                "full training cannot use it: quantised weights do not learn. Use "
                "`method: qlora`, or leave `quantization` out."
            )
        if value == "8bit" and method == "qlora":
            raise ValueError("qlora means 4bit. Use `method: lora` with `quantization: 8bit`.")
        return value

    @field_validator("dora", "rslora")
    @classmethod
    def _shapes_an_adapter(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("method") == "full":
            raise ValueError("it shapes an adapter; full training has none.")
        return value

    @field_validator("hub_push")
    @classmethod
    def _nothing_is_pushed(cls, value: str | None) -> str | None:
        if value:
            raise ValueError(
                "agents push nothing to the Hub. Download or export the model and push it yourself."
            )
        return value

    @field_validator("report_to")
    @classmethod
    def _nothing_is_reported_elsewhere(
        cls, value: str | tuple[str, ...] | None
    ) -> str | tuple[str, ...] | None:
        if value not in (None, "none", (), ("none",)):
            raise ValueError(
                "other trackers are not fed: metrics are kept and shown here, and can be "
                "downloaded. Leave it out."
            )
        return value
