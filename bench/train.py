"""Training speed, as ratios to TRL and to a plain PyTorch loop, step by step in turn.

Every contestant is a process of its own that makes one step when it is asked to, so that all meet
the same machine. `dense`: rows of 256 tokens, all learnt from, 4 at a time. `mixed`: real
instructions of all lengths, up to 1024 tokens; what counts there are tokens that carry text.
Goals: ours / TRL with the same flags 0.98, / TRL's defaults on mixed rows 2, / the loop 0.9.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.train_appliance import appliance  # noqa: E402
from parsyn.demo.smollm2 import prepare_smollm2  # noqa: E402

LENGTH, BATCH = 256, 4
MIXED_ROWS = 300


class Contestant:
    def __init__(self, way: str, model: Path, rows: Path, batch: int, accumulation: int) -> None:
        self.way = way
        self.steps: list[dict[str, Any]] = []
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        script = str(Path(__file__).with_name("train_contestant.py"))
        command = [sys.executable, script, way, str(model), str(rows), str(batch)]
        self.process = subprocess.Popen(
            [*command, str(accumulation)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def step(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            said = self.errors.read()[-2000:]
            raise SystemExit(f"{self.way} ended ({self.process.wait()}):\n{said}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            if pipe:
                pipe.close()

    @property
    def rate(self) -> float:
        """Tokens a second over all measured steps."""
        return sum(s["tokens"] for s in self.steps) / sum(s["seconds"] for s in self.steps)


def race(ways: dict[str, tuple[int, int]], model: Path, rows: Path, steps: int) -> list[Contestant]:
    """Each way's steps, in turn, the order shuffled; the first step of each is not counted."""
    field = [Contestant(way, model, rows, *sizes) for way, sizes in ways.items()]
    try:
        for one in field:
            one.step()
        order = random.Random(0)
        for _ in range(steps):
            for one in order.sample(field, len(field)):
                one.steps.append(one.step())
    finally:
        for one in field:
            one.close()
    return field


def ratio(one: Contestant, other: Contestant, rounds: int = 2000) -> tuple[float, float, float]:
    """Rate of one through that of the other, with the middle 90 % of resampled rounds."""
    order = random.Random(1)
    pairs = list(zip(one.steps, other.steps, strict=True))
    found = []
    for _ in range(rounds):
        chosen = order.choices(pairs, k=len(pairs))
        rates = [
            sum(step["tokens"] for step in side) / sum(step["seconds"] for step in side)
            for side in zip(*chosen, strict=True)
        ]
        found.append(rates[0] / rates[1])
    found.sort()
    return one.rate / other.rate, found[rounds // 20], found[-rounds // 20]


def through_the_appliance(model: Path, rows: Path, work: Path, steps: int) -> None:
    """Jobs of `steps` dense steps and as many of TRL's in turn; one runs while the other waits."""
    trl = Contestant("trl", model, rows, BATCH, 1)
    ours: list[float] = []
    try:
        with appliance(work, model, rows, BATCH) as job:
            trl.step()
            for _ in range(2):
                ours += job(steps)
                trl.steps += [trl.step() for _ in range(steps)]
    finally:
        trl.close()
    rate = BATCH * LENGTH * len(ours) / sum(ours)
    report("appliance", "ours_tokens_per_second", rate, "tokens/s")
    report("appliance", "trl_tokens_per_second", trl.rate, "tokens/s")
    report("appliance", "ours/trl", rate / trl.rate, "ratio", goal=0.98)


def dense_rows(folder: Path) -> Path:
    order = random.Random(0)
    rows = []
    for _ in range(64):
        ids = [order.randrange(10, 49_000) for _ in range(LENGTH)]
        rows.append({"input_ids": ids, "labels": ids})
    path = folder / "dense.json"
    path.write_text(json.dumps(rows))
    return path


def mixed_rows(folder: Path, source: Path | None) -> Path:
    """Instructions as chats; without a file, made up with lengths as real ones have."""
    rows = []
    if source:
        for row in json.loads(source.read_text())[:MIXED_ROWS]:
            asked = "\n".join(part for part in (row["instruction"], row["input"]) if part)
            rows.append(_chat(asked, row["output"]))
    else:
        order = random.Random(0)
        words = ["sea", "calm", "lamp", "keeper", "whale", "home", "dawn", "boat"]
        for _ in range(MIXED_ROWS):
            # Log-normal, as the lengths of instructions and answers are.
            sizes = [1 + min(600, int(order.lognormvariate(mu, 0.9))) for mu in (2.8, 3.9)]
            rows.append(_chat(*(" ".join(order.choices(words, k=size)) for size in sizes)))
    path = folder / "mixed.json"
    path.write_text(json.dumps(rows))
    return path


def _chat(asked: str, said: str) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": asked}],
        "completion": [{"role": "assistant", "content": said}],
    }


def report(part: str, name: str, value: float, unit: str, **more: Any) -> None:
    line = {"bench": "train", "part": part, "name": name, "value": round(value, 3), "unit": unit}
    print(json.dumps({**line, **more}), flush=True)


def tell(part: str, field: list[Contestant], goals: dict[str, float]) -> None:
    ours = field[0]
    for one in field:
        report(part, f"{one.way}_tokens_per_second", one.rate, "tokens/s")
        report(part, f"{one.way}_step", statistics.median(s["seconds"] for s in one.steps), "s")
        report(part, f"{one.way}_peak_memory", one.steps[-1]["rss"] / 2**20, "MiB")
    for other in field[1:]:
        value, low, high = ratio(ours, other)
        report(
            part,
            f"{ours.way}/{other.way}",
            value,
            "ratio",
            goal=goals[other.way],
            between=[round(low, 3), round(high, 3)],
        )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", default=["appliance", "dense", "mixed"])
    options.add_argument("--model", type=Path, help="A model folder; default: SmolLM2.")
    options.add_argument("--mixed", type=Path, help="Alpaca rows (JSON) for the mixed part.")
    options.add_argument("--steps", type=int, default=8)
    given = options.parse_args()
    model = given.model or prepare_smollm2()
    with tempfile.TemporaryDirectory(prefix="parsyn-bench-") as work:
        if "appliance" in given.parts:
            rows = dense_rows(Path(work))
            through_the_appliance(model, rows, Path(work) / "appliance", given.steps)
        if "dense" in given.parts:
            sizes = (BATCH, 1)
            ways = {"ours": sizes, "bare": sizes, "trl": sizes}
            field = race(ways, model, dense_rows(Path(work)), given.steps)
            tell("dense", field, {"bare": 0.9, "trl": 0.98})
        if "mixed" in given.parts:
            rows = mixed_rows(Path(work), given.mixed)
            field = race({"ours-auto": (0, 0), "trl": (8, 2), "trl-defaults": (8, 1)}, model, rows,
                         given.steps)  # fmt: skip
            tell("mixed", field, {"trl": 0.98, "trl-defaults": 2.0})
    return 0


if __name__ == "__main__":
    sys.exit(main())
