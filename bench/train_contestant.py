"""One way to train, in a process of its own, a step at a time when it is told to.

    python bench/train_contestant.py WAY MODEL ROWS BATCH ACCUMULATION

ROWS is a JSON file of [{"input_ids": [...], "labels": [...]}, ...] or of conversations. On each
line of standard input one step is made and answered with {"tokens", "seconds", "loss", "rss"}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TQDM_DISABLE": "1"}
sys.path.insert(0, str(Path(__file__).parents[1]))

# On a machine that others use, CPU seconds of one thread (OMP_NUM_THREADS=1) compare best.
clock = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
OUT = os.fdopen(os.dup(1), "w")
RANK, ALPHA, RATE, STEPS = 16, 32, 2e-4, 400


class Turnstile:
    """Waits for the next line, then times until the step's end."""

    def __init__(self) -> None:
        self.began = self.wall = 0.0

    def wait(self) -> None:
        if not sys.stdin.readline():
            os._exit(0)
        self.began, self.wall = clock(), time.perf_counter()

    def passed(self, tokens: int, loss: float) -> None:
        seconds = clock() - self.began
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer = {"tokens": tokens, "seconds": seconds, "loss": loss, "rss": rss}
        print(json.dumps(answer), file=OUT, flush=True)


def adapter_config() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM")


def bare(model: Path, rows: list[dict[str, Any]], batch: int, accumulation: int) -> None:
    """A plain PyTorch loop: PEFT's adapter in bf16 on a bf16 model, AdamW, dense batches."""
    import torch
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16)
    network = get_peft_model(network, adapter_config(), autocast_adapter_dtype=False).train()
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=RATE, fused=True)
    turn, at = Turnstile(), 0
    while True:
        turn.wait()
        tokens, total = 0, 0.0
        for _ in range(accumulation):
            chosen = [rows[(at + n) % len(rows)] for n in range(batch)]
            at += batch
            ids = torch.tensor([row["input_ids"] for row in chosen])
            labels = torch.tensor([row["labels"] for row in chosen])
            loss = network(input_ids=ids, labels=labels).loss / accumulation
            loss.backward()
            tokens, total = tokens + ids.numel(), total + float(loss.detach())
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        turn.passed(tokens, total)


def trl(
    model: Path, rows: list[dict[str, Any]], batch: int, accumulation: int, *, defaults: bool
) -> None:
    """TRL's SFTTrainer with PEFT: as it comes, or with the precision and sizes that we choose."""
    import datasets
    import torch
    from transformers import AutoTokenizer, PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    turn = Turnstile()

    class Steps(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            turn.wait()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any, **kwargs: Any) -> None:
            if "loss" in logs:
                seen = int(logs["num_tokens"])
                turn.passed(seen - self.seen, float(logs["loss"]))
                self.seen = seen

        seen = 0

    same: dict[str, Any] = {}
    if not defaults:
        same = {
            "per_device_train_batch_size": batch,
            "gradient_accumulation_steps": accumulation,
            "gradient_checkpointing": False,
            "bf16": False,
            "model_init_kwargs": {"dtype": torch.bfloat16},
            "optim": "adamw_torch_fused",
            "weight_decay": 0.01,
            "lr_scheduler_type": "cosine",
        }
    config = SFTConfig(
        output_dir="/tmp/parsyn-bench-trl",
        max_length=1024,
        max_steps=STEPS,
        learning_rate=RATE,
        use_cpu=True,
        dataloader_pin_memory=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **same,
    )
    trainer = SFTTrainer(
        model=str(model),
        args=config,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=adapter_config(),
        callbacks=[Steps()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


class Context:
    """A task context whose steps wait at the turnstile."""

    device, max_batch_size, trust_remote_code = "cpu", 32, False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.turn = Turnstile()
        self.tokens = 0
        self.loss = 0.0
        self.waiting = True

    def log(self, text: str, level: str = "info") -> None:
        print(text, file=sys.stderr)

    def phase(self, phase: Any, done: int | None = None, total: int | None = None) -> None:
        self.training = phase == "training"

    def cancelled(self) -> bool:
        if self.training and self.waiting:
            self.turn.wait()
            self.waiting = False
        return False

    def progress(self, step: int, total_steps: int, epoch: float | None = None) -> None:
        self.step = step

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        seconds = time.perf_counter() - self.turn.wall
        self.turn.passed(round(values["tokens_per_second"] * seconds), values["loss"])
        self.waiting = True

    def sample(self, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("no samples were asked for")

    def checkpoint(self, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("no checkpoint was asked for")


def ours(
    model: Path, rows: Sequence[dict[str, Any]], batch: int, accumulation: int, *, auto: bool
) -> None:
    """Our trainer through `train()`, as the agent's task calls it."""
    import tempfile

    from parsyn.plugin.task import LocalDataset, LocalModel
    from parsyn.plugin.trainer import TrainInputs
    from parsyn.wire.states import FileFormat, SchemaKind
    from parsyn_plugins.trainer_sft.trainer import SftTrainer

    work = Path(tempfile.mkdtemp(prefix="parsyn-bench-"))
    path = work / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kind = SchemaKind.TOKENIZED if "input_ids" in rows[0] else SchemaKind.MESSAGES
    if kind is SchemaKind.MESSAGES:
        lines = [{"messages": row["prompt"] + row["completion"]} for row in rows]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config: dict[str, Any] = {
        "max_steps": STEPS,
        "epochs": 1000,
        "learning_rate": RATE,
        "max_seq_length": 1024,
        "validation_split": 0,
        "save_steps": STEPS,
        "logging_steps": 1,
        "sample_prompts": 0,
    }
    if not auto:
        config |= {"batch_size": batch, "gradient_accumulation_steps": accumulation}
    trainer = SftTrainer()
    dataset = LocalDataset(path, FileFormat.JSONL, kind, name="bench.jsonl")
    inputs = TrainInputs(LocalModel(model, name="bench"), dataset)
    (work / "task").mkdir()
    trainer.train(trainer.parse(config), inputs, Context(work / "task"))


def main() -> None:
    way, model, rows_path, batch, accumulation = sys.argv[1:]
    sys.stdout = sys.stderr
    rows = json.loads(Path(rows_path).read_text())
    sizes = int(batch), int(accumulation)
    if way == "bare":
        bare(Path(model), rows, *sizes)
    elif way in ("trl", "trl-defaults"):
        trl(Path(model), rows, *sizes, defaults=way == "trl-defaults")
    elif way in ("ours", "ours-auto"):
        ours(Path(model), rows, *sizes, auto=way == "ours-auto")
    else:
        raise SystemExit(f"There is no way {way!r} to train.")


if __name__ == "__main__":
    main()
