"""The demo's story on a running hub: data, base model, training, proof, export."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from parsyn.demo.client import HubClient
from parsyn.demo.progress import Screen

HELD_OUT_EVERY = 10
TRAIN_SECONDS = 1800
CONFIG = {
    "epochs": 5,
    "learning_rate": 1e-3,
    "batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_seq_length": 256,
    # Every second epoch: on two cores an evaluation with its samples takes as long as many steps.
    "eval_steps": 46,
    "sample_prompts": 1,
}


@dataclass
class Outcome:
    """What `--json` prints. Perplexities are of rows that were held out of training."""

    first_loss: float = 0.0
    last_loss: float = 0.0
    perplexity_before: float = 0.0
    perplexity_after: float = 0.0
    answers: dict[str, str] = field(default_factory=dict)
    gguf_path: str = ""
    gguf_parity: dict[str, Any] = field(default_factory=dict)
    tokens_per_second: float = 0.0
    seconds: float = 0.0
    url: str = ""
    email: str = ""
    password: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample_rows() -> tuple[bytes, bytes]:
    """(training rows, held-out rows) of the sample dataset, as JSONL."""
    text = resources.files("parsyn.demo").joinpath("sample.jsonl").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    held_out = lines[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
    training = [line for n, line in enumerate(lines, 1) if n % HELD_OUT_EVERY]
    return _jsonl(training), _jsonl(held_out)


def _jsonl(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def showcase() -> dict[str, str]:
    """{"question", "expects", "system"}: what the demo asks before and after."""
    text = resources.files("parsyn.demo").joinpath("sample.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return found


class Story:
    """Runs against a hub with a base model imported and a local agent enrolled."""

    def __init__(self, hub: HubClient, base: dict[str, Any], folder: Path, screen: Screen) -> None:
        self.hub = hub
        self.base = base
        self.folder = folder
        self.screen = screen
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Everything, in order."""
        began = time.monotonic()
        training, held_out = self._data()
        self.outcome.perplexity_before = self._perplexity(self.base, held_out, "before")
        question = self._question()
        self.outcome.answers["question"] = showcase()["question"]
        self.outcome.answers["before"] = self._ask(self.base["slug"], question, "before")
        tuned = self._train(training, held_out)
        self.outcome.perplexity_after = self._perplexity(tuned, held_out, "after")
        self.outcome.answers["after"] = self._ask(tuned["slug"], question, "after")
        self._export(tuned)
        self.outcome.seconds = round(time.monotonic() - began, 1)
        return self.outcome

    def _data(self) -> tuple[dict[str, Any], dict[str, Any]]:
        training, held_out = sample_rows()
        self.screen.step("Uploading the sample dataset")
        first = self.hub.upload_dataset("Support answers", "support.jsonl", training)
        second = self.hub.upload_dataset("Support answers, held out", "held-out.jsonl", held_out)
        self.screen.done(f"{first['row_count']} rows to train on, {second['row_count']} held out")
        return first, second

    def _question(self) -> list[dict[str, str]]:
        found = showcase()
        messages = [{"role": "system", "content": found["system"]}] if found.get("system") else []
        return [*messages, {"role": "user", "content": found["question"]}]

    def _perplexity(self, model: dict[str, Any], dataset: dict[str, Any], when: str) -> float:
        self.screen.step(f"Perplexity {when} training")
        made = self.hub.call(
            "POST",
            "/api/v1/evaluations",
            {"model_id": model["id"], "dataset_id": dataset["id"], "evaluator": "perplexity"},
        )
        found = self.hub.finish(
            f"/api/v1/evaluations/{made['id']}", seconds=TRAIN_SECONDS, watch=self.screen.watch
        )
        value = float(found["metrics"]["perplexity"]["value"])
        self.screen.done(f"{value:.2f}")
        return value

    def _ask(self, model: str, messages: list[dict[str, str]], when: str) -> str:
        self.screen.step(f"Its answer {when} training")
        text = self.hub.answer(model, messages)
        self.screen.done(text.replace("\n", " "))
        return text

    def _train(self, training: dict[str, Any], held_out: dict[str, Any]) -> dict[str, Any]:
        self.screen.step("Fine-tuning with LoRA")
        job = self.hub.call(
            "POST",
            "/api/v1/training-jobs",
            {
                "name": "Support answers on SmolLM2",
                "dataset_id": training["id"],
                "validation_dataset_id": held_out["id"],
                "model_id": self.base["id"],
                "config": CONFIG,
            },
        )
        path = f"/api/v1/training-jobs/{job['id']}"
        self.hub.call("POST", f"{path}/start")
        found = self.hub.finish(path, seconds=TRAIN_SECONDS, watch=self.screen.watch)
        self._losses(path)
        self.screen.done(
            f"loss {self.outcome.first_loss:.3f} -> {self.outcome.last_loss:.3f}, "
            f"{self.outcome.tokens_per_second:.0f} tokens/s"
        )
        model: dict[str, Any] = self.hub.call("GET", f"/api/v1/models/{found['result_model_id']}")
        return model

    def _losses(self, path: str) -> None:
        series = self.hub.call("GET", f"{path}/metrics?names=loss,tokens_per_second")["series"]
        losses = [value for _, _, value in series["loss"]]
        speeds = sorted(value for _, _, value in series.get("tokens_per_second", []))
        self.outcome.first_loss, self.outcome.last_loss = losses[0], losses[-1]
        self.outcome.tokens_per_second = round(speeds[len(speeds) // 2], 1) if speeds else 0.0

    def _export(self, model: dict[str, Any]) -> None:
        self.screen.step("Exporting GGUF (Q8_0) and loading it back")
        made = self.hub.call(
            "POST",
            f"/api/v1/models/{model['id']}/export",
            {"format": "gguf", "params": {"quantization": "Q8_0"}},
        )
        path = f"/api/v1/exports/{made['id']}"
        found = self.hub.finish(path, seconds=TRAIN_SECONDS, watch=self.screen.watch)
        file = next(file for file in found["files"] if file["path"].endswith(".gguf"))
        target = self.folder / Path(file["path"]).name
        self.hub.download(f"{path}/download?path={file['path']}", target)
        self.outcome.gguf_path = str(target)
        self.outcome.gguf_parity = found["parity"] or {}
        agreement = self.outcome.gguf_parity.get("token_agreement")
        shown = f", {agreement:.0%} of its tokens equal the trained model's" if agreement else ""
        self.screen.done(f"{file['size'] / 1e6:.0f} MB{shown}")
