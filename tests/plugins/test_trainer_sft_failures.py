"""Bad luck and bad input: the reason, the sentence, and what to change."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from parsyn.plugin import loading
from parsyn.plugin.task import LocalDataset, LocalModel, TaskCancelled, TaskFailure
from parsyn.plugin.testing_task import RecordingContext
from parsyn.wire.states import FailureReason, FileFormat, SchemaKind
from parsyn_plugins.trainer_sft import checkpoints
from parsyn_plugins.trainer_sft.failures import Size, plain_failures
from parsyn_plugins.trainer_sft.memory import fit_cpu
from parsyn_plugins.trainer_sft.trainer import SftTrainer
from tests.plugins.conftest import Run, write_chats

FAST: dict[str, Any] = {
    "batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_steps": 4,
    "sample_prompts": 0,
    "mixed_precision": "no",
}


def _fails(run: Run, reason: FailureReason, config: dict[str, Any], **given: Any) -> TaskFailure:
    with pytest.raises(TaskFailure) as caught:
        run({**FAST, **config}, **given)
    assert caught.value.failure.reason is reason
    assert caught.value.failure.message.endswith((".", ").", "!", "?"))
    return caught.value


def test_a_loss_that_is_no_number_is_diverged(run: Run, tiny: LocalModel, tmp_path: Path) -> None:
    model = _copy(tiny, tmp_path)
    weights = load_file(model.path / "model.safetensors")
    weights["model.norm.weight"].fill_(math.nan)
    save_file(weights, model.path / "model.safetensors", metadata={"format": "pt"})
    failure = _fails(run, FailureReason.DIVERGED, {}, model=model).failure
    assert "step 1" in failure.message
    assert failure.line == "step 1: loss = nan"
    assert failure.advice is not None
    assert "learning_rate" in failure.advice


def _copy(model: LocalModel, tmp_path: Path) -> LocalModel:
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in model.path.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return LocalModel(folder, name="copy")


def test_all_rows_masked_is_bad_data(run: Run, tmp_path: Path) -> None:
    dataset = write_chats(tmp_path / "long.jsonl", 6)
    failure = _fails(run, FailureReason.BAD_DATA, {"max_seq_length": 4}, dataset=dataset).failure
    assert "train_on `completions`" in failure.message
    assert "max_seq_length 4" in failure.message
    assert failure.advice is not None
    assert "max_seq_length" in failure.advice


def test_a_file_without_a_good_row_is_bad_data(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"messages": "what?"}\n' * 3)
    dataset = LocalDataset(path, FileFormat.JSONL, SchemaKind.MESSAGES, name="broken.jsonl")
    failure = _fails(run, FailureReason.BAD_DATA, {}, dataset=dataset).failure
    assert failure.line is not None
    assert failure.line.startswith("row 1:")


def test_bad_rows_are_left_out_and_named(run: Run, tmp_path: Path) -> None:
    dataset = write_chats(tmp_path / "mixed.jsonl", 10)
    with dataset.path.open("a") as file:
        file.write('{"messages": []}\n')
    _, seen = run(FAST, dataset=dataset)
    assert any("1 rows were left out" in line and "row 11" in line for line in seen.logs)


def test_rows_that_are_cut_are_counted(run: Run) -> None:
    _, seen = run({**FAST, "max_seq_length": 40})
    assert any("cut" in line for line in seen.logs)


def test_a_sequence_beyond_the_context_is_refused(run: Run) -> None:
    failure = _fails(run, FailureReason.USER_ERROR, {"max_seq_length": 1024}).failure
    assert "512" in failure.message


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"fp16": True, "mixed_precision": None}, "fp16"),
        ({"optimizer": "adamw_8bit"}, "adamw_8bit"),
        ({"target_modules": ["no_such_layer"]}, "no_such_layer"),
        ({"target_modules": ["lm_head"]}, "head"),
    ],
)
def test_what_this_machine_or_model_cannot_do(run: Run, config: dict[str, Any], said: str) -> None:
    config = {name: value for name, value in {**FAST, **config}.items() if value is not None}
    with pytest.raises(TaskFailure) as caught:
        run(config)
    assert caught.value.failure.reason is FailureReason.USER_ERROR
    assert said in caught.value.failure.message
    assert caught.value.failure.advice


def test_qlora_without_bitsandbytes_is_refused_with_the_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "bitsandbytes", None)
    failure = _fails(run, FailureReason.USER_ERROR, {"method": "qlora"}).failure
    assert "4bit" in failure.message
    assert failure.line is not None
    assert "bitsandbytes" in failure.line


@pytest.mark.parametrize("key", ["auto_map", "_attn_implementation", "trust_remote_code"])
def test_a_config_that_would_run_code_is_refused(
    run: Run, tiny: LocalModel, tmp_path: Path, key: str
) -> None:
    model = _copy(tiny, tmp_path)
    path = model.path / "config.json"
    config = json.loads(path.read_bytes())
    config["nested"] = {key: {"AutoModelForCausalLM": "evil.Model"}}
    path.write_text(json.dumps(config))
    failure = _fails(run, FailureReason.MODEL_UNAVAILABLE, {}, model=model).failure
    assert key in failure.message
    assert failure.advice is not None
    assert "TRUST_REMOTE_CODE" in failure.advice


def test_weights_that_are_no_safetensors_are_refused(
    run: Run, tiny: LocalModel, tmp_path: Path
) -> None:
    model = _copy(tiny, tmp_path)
    (model.path / "model.safetensors").rename(model.path / "pytorch_model.bin")
    failure = _fails(run, FailureReason.MODEL_UNAVAILABLE, {}, model=model).failure
    assert "safetensors" in failure.message


def test_a_cut_off_weights_file_is_refused(run: Run, tiny: LocalModel, tmp_path: Path) -> None:
    model = _copy(tiny, tmp_path)
    path = model.path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    failure = _fails(run, FailureReason.MODEL_UNAVAILABLE, {}, model=model).failure
    assert failure.line is not None


def test_a_full_disk_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "sync", refuse)
    failure = _fails(run, FailureReason.DISK_FULL, {}).failure
    assert "disk is full" in failure.message


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
        MemoryError(),
    ],
)
def test_out_of_memory_advises_in_numbers(tmp_path: Path, error: Exception) -> None:
    size = Size(batch_size=8, longest=2048, checkpointing=False)
    with pytest.raises(TaskFailure) as caught, plain_failures(size, tmp_path):
        raise error
    failure = caught.value.failure
    assert failure.reason is FailureReason.OUT_OF_MEMORY
    assert failure.advice is not None
    for said in ("batch_size from 8 to 4", "max_seq_length from 2048 to 1024", "checkpointing"):
        assert said in failure.advice


def test_a_real_allocation_that_cannot_be_is_out_of_memory(tmp_path: Path) -> None:
    with pytest.raises(TaskFailure) as caught, plain_failures(Size(), tmp_path):
        torch.empty(1 << 50)
    assert caught.value.failure.reason is FailureReason.OUT_OF_MEMORY


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(KeyError), plain_failures(Size(), tmp_path):
        raise KeyError("x")


@pytest.mark.parametrize("steps", [0, 2])
def test_it_stops_when_cancelled(run: Run, steps: int) -> None:
    contexts: list[RecordingContext] = []

    def cancel(seen: RecordingContext) -> bool:
        contexts.append(seen)
        return len(seen.steps) >= steps

    with pytest.raises(TaskCancelled):
        run({**FAST, "max_steps": 9, "epochs": 9}, cancel_when=cancel)
    assert len(contexts[-1].steps) == steps


def test_a_resumed_checkpoint_must_be_ours(run: Run, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    _fails(run, FailureReason.INTERNAL, {}, resume=tmp_path / "foreign")


def test_the_cpu_rule_bounds_tokens_and_memory() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, hidden_size=32, intermediate_size=32,
                                         num_hidden_layers=1, num_attention_heads=2))  # fmt: skip
    parse = SftTrainer().parse
    assert fit_cpu(model, parse({}), 100, 100).batch_size == 16
    assert fit_cpu(model, parse({}), 2048, 600).batch_size == 3
    assert fit_cpu(model, parse({}), 9000, 9000).batch_size == 1
    assert fit_cpu(model, parse({"batch_size": 5}), 9000, 9000).batch_size == 5
    assert not fit_cpu(model, parse({}), 100, 100).checkpointing
    assert fit_cpu(model, parse({"gradient_checkpointing": True}), 100, 100).checkpointing
    huge = fit_cpu(model, parse({}), 1 << 31, 1000)
    assert huge.batch_size == 1
    assert huge.checkpointing


def test_dtypes_of_the_cpu() -> None:
    native = loading.cpu_has_bf16()
    expected = torch.bfloat16 if native else torch.float32
    assert loading.pick_dtype("cpu") is expected
    assert loading.pick_dtype("cpu", "no") is torch.float32
    assert loading.pick_dtype("cpu", "bf16") is torch.bfloat16
