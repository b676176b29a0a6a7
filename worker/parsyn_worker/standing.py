"""How the agent stands, in a file that `parsyn status` and `doctor` read."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

FILE = "status.json"

Phase = Literal["starting", "connecting", "ready", "refused", "draining", "stopped"]


@dataclass(frozen=True)
class Standing:
    """`error` is the sentence that the hub or the network last gave; times are since the epoch."""

    phase: Phase = "starting"
    pid: int = 0
    hub: str = ""
    device: str = ""
    worker_id: int | None = None
    name: str | None = None
    error: str | None = None
    draining: bool = False
    tasks: list[str] = field(default_factory=list)
    started_at: float = 0.0
    changed_at: float = 0.0


class StandingFile:
    """Written whole at each change, by the one agent of this folder."""

    def __init__(self, folder: Path, standing: Standing) -> None:
        self.path, self.now = folder / FILE, standing
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.update()

    def update(self, **values: object) -> None:
        self.now = replace(self.now, changed_at=time.time(), **values)  # type: ignore[arg-type]
        draft = self.path.with_suffix(f".{os.getpid()}")
        # A full disk must not stop the agent from working.
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(asdict(self.now)), encoding="utf-8")
            draft.replace(self.path)


def read_standing(folder: Path) -> Standing | None:
    """None when no agent has run here, or its file is damaged."""
    try:
        return Standing(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
