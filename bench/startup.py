"""How long a person waits: `parsyn --help` (goal 300 ms), `parsyn serve` to healthy (goal 3 s)."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HELP_RUNS = 9
SERVE_RUNS = 3
COMMAND = [sys.executable, "-m", "parsyn.cli.main"]


def report(name: str, value: float, unit: str, goal: float) -> None:
    line = {"bench": "start-up", "name": name, "value": round(value, 3), "unit": unit, "goal": goal}
    print(json.dumps(line), flush=True)


def help_seconds() -> float:
    began = time.perf_counter()
    subprocess.run([*COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_seconds() -> float:
    folder = tempfile.mkdtemp(prefix="parsyn-bench-")
    port = free_port()
    began = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--data", folder, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not healthy(port):
            if process.poll() is not None or time.perf_counter() - began > 60:
                raise SystemExit("parsyn serve did not become healthy.")
            time.sleep(0.01)
        return time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    report("parsyn --help", statistics.median(help_seconds() for _ in range(HELP_RUNS)), "s", 0.3)
    report(
        "serve to healthy", statistics.median(serve_seconds() for _ in range(SERVE_RUNS)), "s", 3
    )
