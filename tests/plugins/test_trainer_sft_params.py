"""Names, aliases and defaults of a training config, and what is refused in which words."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.params import aliases_of
from parsyn.plugin.trainer import ModelFacts
from parsyn_plugins.trainer_sft.params import SftParams
from parsyn_plugins.trainer_sft.trainer import SftTrainer

trainer = SftTrainer()

CONTRACT: dict[str, tuple[list[str], Any]] = {
    "epochs": (["num_epochs", "num_train_epochs", "n_epochs"], 3),
    "max_steps": ([], None),
    "batch_size": (["micro_batch_size", "per_device_train_batch_size"], "auto"),
    "gradient_accumulation_steps": (["grad_accumulation"], "auto"),
    "learning_rate": (["lr"], "auto"),
    "lr_scheduler": (["lr_scheduler_type"], "cosine"),
    "warmup_ratio": ([], 0.03),
    "warmup_steps": ([], None),
    "weight_decay": ([], 0.01),
    "max_grad_norm": ([], 1.0),
    "optimizer": (["optim"], "auto"),
    "max_seq_length": (["cutoff_len", "sequence_len", "max_length"], "auto"),
    "packing": (["sample_packing"], "auto"),
    "train_on": (["train_on_inputs", "train_on_prompt", "train_on_completions"], "completions"),
    "mixed_precision": (["bf16", "fp16"], "auto"),
    "method": (["use_peft"], "lora"),
    "lora_r": (["lora_rank"], 16),
    "lora_alpha": ([], 32),
    "lora_dropout": ([], 0.0),
    "target_modules": (["lora_target"], "all-linear"),
    "quantization": (["load_in_4bit", "load_in_8bit"], None),
    "gradient_checkpointing": ([], "auto"),
    "validation_split": (["val_size", "val_set_size"], "auto"),
    "eval_steps": ([], "auto"),
    "save_steps": ([], "auto"),
    "logging_steps": ([], "auto"),
    "early_stopping_patience": (["early_stopping_steps"], None),
    "save_total_limit": ([], 3),
    "load_best_at_end": ([], "auto"),
    "sample_prompts": ([], 3),
    "seed": ([], 42),
    "hub_push": ([], None),
    "report_to": ([], None),
}


@pytest.mark.parametrize("name", CONTRACT)
def test_names_aliases_and_defaults(name: str) -> None:
    aliases, default = CONTRACT[name]
    known = aliases_of(SftParams)
    assert getattr(trainer.parse({}), name) == default
    assert all(known[alias] == name for alias in aliases)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"num_epochs": 2}, "epochs", 2),
        ({"lr": 1e-4}, "learning_rate", 1e-4),
        ({"train_on_inputs": True}, "train_on", "all"),
        ({"train_on_inputs": False}, "train_on", "completions"),
        ({"train_on_prompt": True}, "train_on", "all"),
        ({"train_on_completions": False}, "train_on", "all"),
        ({"train_on_completions": True}, "train_on", "completions"),
        ({"bf16": True}, "mixed_precision", "bf16"),
        ({"bf16": True, "fp16": False}, "mixed_precision", "bf16"),
        ({"bf16": False, "fp16": True}, "mixed_precision", "fp16"),
        ({"bf16": False, "fp16": False}, "mixed_precision", "no"),
        ({"bf16": "auto"}, "mixed_precision", "auto"),
        ({"use_peft": False}, "method", "full"),
        ({"use_peft": True}, "method", "lora"),
        ({"use_peft": True, "method": "qlora"}, "method", "qlora"),
        ({"use_peft": False, "method": "full"}, "method", "full"),
        ({"load_in_4bit": True}, "method", "qlora"),
        ({"load_in_4bit": True}, "base_quantization", "4bit"),
        ({"load_in_8bit": True}, "quantization", "8bit"),
        ({"load_in_4bit": False, "load_in_8bit": False}, "quantization", None),
        ({"method": "qlora"}, "base_quantization", "4bit"),
        ({"lora_target": "q_proj, v_proj"}, "target_modules", ("q_proj", "v_proj")),
        ({"lora_target": "all"}, "target_modules", "all-linear"),
        ({"val_size": 0.1}, "validation_split", 0.1),
        ({"val_size": 100}, "validation_split", 100),
        ({"eval_steps": 0.25}, "eval_steps", 0.25),
        ({}, "resolved_learning_rate", 2e-4),
        ({"method": "full"}, "resolved_learning_rate", 1e-5),
        ({"report_to": "none"}, "report_to", "none"),
        ({"sample_prompts": ["Hello?"]}, "sample_prompts", ("Hello?",)),
    ],
)
def test_other_tools_words_become_ours(given: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(trainer.parse(given), name) == value


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"epochz": 3}, "epochz", "`epochs`"),
        ({"lora_rnk": 8}, "lora_rnk", "`lora_rank`"),
        ({"epochs": 0}, "epochs", "above 0 and up to 1000"),
        ({"epochs": True}, "epochs", "number"),
        ({"epochs": float("nan")}, "epochs", "number"),
        ({"batch_size": 0}, "batch_size", "1 or more"),
        ({"batch_size": "big"}, "batch_size", '"auto"'),
        ({"epochs": 2, "num_epochs": 3}, "num_epochs", "twice"),
        ({"bf16": True, "fp16": True}, "fp16", "exclude"),
        ({"load_in_4bit": True, "load_in_8bit": True}, "load_in_8bit", "exclude"),
        ({"use_peft": False, "method": "lora"}, "use_peft", "different"),
        ({"use_peft": "yes"}, "method", "lora"),
        ({"method": "full", "quantization": "4bit"}, "quantization", "do not learn"),
        ({"method": "qlora", "quantization": "8bit"}, "quantization", "4bit"),
        ({"method": "full", "dora": True}, "dora", "adapter"),
        ({"lr": 0}, "learning_rate", "above 0"),
        ({"validation_split": 1.5}, "validation_split", "below 1"),
        ({"target_modules": []}, "target_modules", "all-linear"),
        ({"sample_prompts": 99}, "sample_prompts", "0 to 10"),
        ({"hub_push": "me/model"}, "hub_push", "push"),
        ({"report_to": ["wandb"]}, "report_to", "trackers"),
        ({"seed": -1}, "seed", "0 or more"),
        ({"lora_r": 5000}, "lora_r", "4096"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(given: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ParsynError) as caught:
        trainer.parse(given)
    assert caught.value.code == ErrorCode.VALIDATION_FAILED
    found = [error for error in caught.value.errors if error.loc == ("config", field)]
    assert found
    assert said in found[0].msg


def test_every_error_is_reported_at_once() -> None:
    with pytest.raises(ParsynError) as caught:
        trainer.parse({"bf16": True, "fp16": True, "epochz": 1, "lora_r": -1})
    assert {error.loc[1] for error in caught.value.errors} == {"fp16", "epochz", "lora_r"}


def test_a_sequence_beyond_the_context_is_refused_before_the_queue() -> None:
    facts = ModelFacts("LlamaForCausalLM", 2048, 1000)
    assert trainer.check(trainer.parse({"max_seq_length": 2048}), facts) == []
    (reason,) = trainer.check(trainer.parse({"max_seq_length": 4096}), facts)
    assert "4096" in reason
    assert "2048" in reason
    unknown = ModelFacts(None, None, None)
    assert trainer.check(trainer.parse({"max_seq_length": 4096}), unknown) == []


def test_the_form_has_words_for_every_field() -> None:
    schema = SftParams.model_json_schema()
    for name, field in schema["properties"].items():
        assert field["title"], name
        assert field["description"].endswith("."), name
        assert field["group"], name
        assert isinstance(field["advanced"], bool), name
    simple = [name for name, field in schema["properties"].items() if not field["advanced"]]
    assert 5 <= len(simple) <= 14
    json.dumps(schema)


def test_listing_and_parsing_load_no_torch() -> None:
    code = (
        "import sys\n"
        "from parsyn.plugin.manager import Plugins\n"
        "plugins = Plugins()\n"
        "plugins.trainer('sft').parse({})\n"
        "plugins.evaluator('perplexity').parse({})\n"
        "exporter = plugins.exporter('gguf')\n"
        "exporter.refuses('LlamaForCausalLM', exporter.parse({}))\n"
        "assert not plugins.failed, plugins.failed\n"
        "heavy = {'torch', 'transformers', 'numpy', 'trl', 'peft', 'gguf', 'llama_cpp'}\n"
        "print(sorted(heavy.intersection(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
