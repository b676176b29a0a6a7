"""`make bench`: every benchmark in turn, one JSON line a measurement on standard output.

`make bench ARGS="startup chat"` runs some. Each is also a command of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    "startup", "chat", "train", "load", "storm", "dispatch", "metrics-store", "servers", "watching",
    "upload",
)  # fmt: skip


def main() -> int:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        print(f"There is no benchmark {unknown[0]}. Known: {', '.join(BENCHMARKS)}.")
        return 2
    return max(subprocess.call([sys.executable, str(script_of(name))]) for name in names)


def script_of(name: str) -> Path:
    return HERE / f"{name.replace('-', '_')}.py"


if __name__ == "__main__":
    sys.exit(main())
