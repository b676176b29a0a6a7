"""Looks over the shoulder of the hub: what is told in which order."""

from __future__ import annotations

from typing import Any


class Witness:
    """Sees every event at its commit and notes what an older attempt brought about."""

    def __init__(self) -> None:
        self.attempts: dict[int, int] = {}
        self.late: list[str] = []

    def __call__(self, type: str, topic: str, data: dict[str, Any]) -> None:
        if not topic.startswith("job:"):
            return
        job_id = int(topic.partition(":")[2])
        newest = self.attempts.get(job_id, 0)
        attempt = data.get("attempt")
        if not isinstance(attempt, int):
            return
        if type == "job.checkpoint" and attempt < newest:
            self.late.append(f"a checkpoint of attempt {attempt} came after attempt {newest} began")
        if type != "job.checkpoint":
            self.attempts[job_id] = max(newest, attempt)
