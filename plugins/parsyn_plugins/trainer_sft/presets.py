"""Where to start from: four answers to "what shall I set?", each with what it costs."""

from __future__ import annotations

from parsyn.plugin.trainer import TrainerPreset

PRESETS = (
    TrainerPreset(
        "balanced",
        "Balanced",
        "An adapter of rank 16, three times through the data. A good first choice for most data.",
        {},
    ),
    TrainerPreset(
        "quick",
        "Quick try",
        "At most 60 steps with a small adapter: shows whether data and model go together. The "
        "result is a first impression, not more.",
        {"epochs": 1.0, "max_steps": 60, "lora_r": 8, "lora_alpha": 16.0},
    ),
    TrainerPreset(
        "thorough",
        "Thorough",
        "A larger adapter that learns more slowly, up to five times through the data; ends by "
        "itself when the validation loss stops falling. Takes about twice as long as Balanced.",
        {
            "epochs": 5.0,
            "learning_rate": 1e-4,
            "lora_r": 32,
            "lora_alpha": 64.0,
            "early_stopping_patience": 4,
        },
    ),
    TrainerPreset(
        "low_memory",
        "Low memory",
        "The base in 4 bit and one row at a time: needs the least memory, and is slower. Rows are "
        "cut at 1024 tokens. For NVIDIA GPUs.",
        {
            "method": "qlora",
            "batch_size": 1,
            "max_seq_length": 1024,
            "gradient_checkpointing": True,
        },
    ),
)
