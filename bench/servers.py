"""The load of `load.py` on each ASGI server that the hub can use, one after the other."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SERVERS = ("hypercorn", "uvicorn", "granian")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=1)
    given, more = options.parse_known_args()
    load = str(Path(__file__).with_name("load.py"))
    codes = [
        subprocess.call([sys.executable, load, "--server", server, *more])
        for _ in range(given.rounds)
        for server in SERVERS
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
