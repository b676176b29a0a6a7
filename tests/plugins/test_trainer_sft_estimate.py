"""What is said of a run beforehand is what it comes to."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from parsyn.plugin.task import LocalModel
from parsyn.plugin.trainer import DataFacts, ModelFacts
from parsyn_plugins.trainer_sft.estimate import estimate, trained_parameters
from parsyn_plugins.trainer_sft.presets import PRESETS
from parsyn_plugins.trainer_sft.trainer import SftTrainer

# In a child, so that this process stays without torch.
COUNT = """
import json, sys
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
for case in json.loads(sys.argv[2]):
    made = get_peft_model(model, LoraConfig(**case, task_type="CAUSAL_LM"))
    print(sum(p.numel() for p in made.parameters() if p.requires_grad))
    model = made.unload()
"""


def facts(**more: Any) -> ModelFacts:
    return ModelFacts("LlamaForCausalLM", 2048, 135_000_000, **more)


def test_the_adapters_size_is_that_of_peft(tiny: LocalModel) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"lora_r": 16}, {"r": 16, "target_modules": "all-linear"}),
        (
            {"lora_r": 4, "target_modules": ["q_proj", "v_proj"]},
            {"r": 4, "target_modules": ["q_proj", "v_proj"]},
        ),
        (
            {"lora_r": 8, "dora": True},
            {"r": 8, "use_dora": True, "target_modules": "all-linear"},
        ),
    ]
    asked = json.dumps([peft for _, peft in cases])
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(tiny.path), asked],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    model = facts(config=json.loads((tiny.path / "config.json").read_text()))
    ours = [trained_parameters(SftTrainer().parse(config), model) for config, _ in cases]
    assert ours == [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("config", "model"),
    [
        ({}, facts(config={"model_type": "mamba"})),
        ({}, facts()),
        ({}, facts(is_adapter=True)),
        ({"target_modules": ["W_pack"]}, facts(config={"model_type": "llama"})),
    ],
)
def test_what_would_be_a_guess_is_left_out(config: dict[str, Any], model: ModelFacts) -> None:
    found = estimate(SftTrainer().parse(config), model, DataFacts(100))
    assert (found.trained_parameters, found.memory_bytes, found.tokens) == (None, None, None)
    assert found.steps == 18


def test_less_is_needed_in_4_bit_and_more_without_recomputing() -> None:
    shape = {
        "model_type": "llama",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    }

    def memory(**config: Any) -> int:
        data = DataFacts(200, tokens=20_000, longest=400)
        found = estimate(SftTrainer().parse(config), facts(config=shape), data).memory_bytes
        assert found is not None
        return found

    assert memory(method="qlora") < memory() < memory(gradient_checkpointing=False)
    assert memory() < memory(batch_size=8) < memory(method="full", batch_size=8)
    assert (
        estimate(SftTrainer().parse({"method": "full"}), facts(), DataFacts(10)).trained_parameters
        == 135_000_000
    )


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_says_only_what_differs(preset: Any) -> None:
    trainer = SftTrainer()
    plain = trainer.parse({}).model_dump(mode="json")
    made = trainer.parse(preset.config).model_dump(mode="json")
    differs = {name: value for name, value in made.items() if plain[name] != value}
    assert differs == dict(preset.config)


def test_the_first_preset_is_the_default() -> None:
    assert not PRESETS[0].config
