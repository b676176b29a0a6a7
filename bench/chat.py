"""Chat through the whole appliance against bare `generate`, same model, precision and prompt.

Rounds alternate, so that both meet the same machine. The model is in memory on both sides.
Goals: added time to first token 50 ms at most; tokens a second at least as many.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from parsyn.demo.smollm2 import prepare_smollm2  # noqa: E402
from tests.appliance import Appliance  # noqa: E402

SHORT = "Write a long story about a lighthouse keeper who befriends a whale."
PROMPTS = {"short": SHORT, "long": f"{'The sea was calm and the lamp was lit. ' * 60}\n{SHORT}"}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", type=Path, help="A model folder; default: SmolLM2.")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--tokens", type=int, default=96)
    given = options.parse_args()
    folder = given.model or prepare_smollm2()
    # So that the appliance is stopped too when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with (
        tempfile.TemporaryDirectory(prefix="parsyn-bench-") as work,
        appliance(Path(work), folder) as ours,
        raw(folder) as bare,
    ):
        for name, prompt in PROMPTS.items():
            compare(name, prompt, ours, bare, given.rounds, given.tokens)
    return 0


def compare(name: str, prompt: str, ours: Any, bare: Any, rounds: int, tokens: int) -> None:
    order = {"messages": [{"role": "user", "content": prompt}], "max_tokens": tokens}
    pairs = [(ours(order), bare(order)) for _ in range(rounds + 1)][1:]
    mine, theirs = zip(*pairs, strict=True)
    rates = median(mine, "rate"), median(theirs, "rate")
    firsts = median(mine, "first"), median(theirs, "first")
    report(name, "tokens_per_second", rates[0], "tokens/s", None)
    report(name, "raw_tokens_per_second", rates[1], "tokens/s", None)
    report(name, "ratio_to_generate", rates[0] / rates[1], "ratio", 1.0)
    report(name, "first_token", firsts[0] * 1000, "ms", None)
    report(name, "raw_first_token", firsts[1] * 1000, "ms", None)
    report(name, "added_first_token", (firsts[0] - firsts[1]) * 1000, "ms", 50.0)
    same = sum(a["text"].strip() == b["text"].strip() for a, b in pairs)
    report(name, "same_text", same / len(pairs), "share", None)


def median(rounds: Any, key: str) -> float:
    return statistics.median(one[key] for one in rounds)


def report(prompt: str, name: str, value: float, unit: str, goal: float | None) -> None:
    line: dict[str, Any] = {"bench": "chat", "prompt": prompt, "name": name}
    line |= {"value": round(value, 3), "unit": unit}
    if goal is not None:
        line["goal"] = goal
    print(json.dumps(line), flush=True)


# --- both sides -------------------------------------------------------------------------------


@contextmanager
def appliance(work: Path, folder: Path) -> Iterator[Any]:
    """A function that asks a running appliance for one streamed answer."""
    running = Appliance(work / "data", agent=True)
    running.create_owner()
    running.start()
    try:
        client = running.client()
        model = running.import_model(folder, "Bench")
        client.wait("/api/v1/workers/summary", lambda row: row["online"] >= 1, seconds=60)
        yield lambda order: stream(client.http, {**order, "model": model["slug"]})
    finally:
        running.stop()


def stream(http: httpx.Client, order: dict[str, Any]) -> dict[str, Any]:
    """Seconds and tokens a second as the client of `/v1/chat/completions` sees them."""
    body = {**order, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    pieces: list[str] = []
    times: list[float] = []
    usage: dict[str, Any] = {}
    began = time.perf_counter()
    with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        if not answer.is_success:
            raise SystemExit(answer.read().decode())
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk:
                raise SystemExit(chunk["error"]["message"])
            usage = chunk["usage"] or usage
            text = chunk["choices"][0]["delta"].get("content") if chunk["choices"] else ""
            if text:
                pieces.append(text)
                times.append(time.perf_counter())
    return {
        "first": times[0] - began,
        "rate": (usage["completion_tokens"] - 1) / (times[-1] - times[0]),
        "tokens": usage["completion_tokens"],
        "text": "".join(pieces),
    }


@contextmanager
def raw(folder: Path) -> Iterator[Any]:
    """A function that asks the bare peer."""
    command = [sys.executable, str(ROOT / "bench" / "raw_generate.py"), str(folder)]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        assert json.loads(stdout.readline())["ready"]

        def ask(order: dict[str, Any]) -> dict[str, Any]:
            stdin.write(json.dumps(order) + "\n")
            stdin.flush()
            found: dict[str, Any] = json.loads(stdout.readline())
            return found

        yield ask
        stdin.close()


if __name__ == "__main__":
    sys.exit(main())
