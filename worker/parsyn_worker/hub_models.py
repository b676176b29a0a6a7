"""Models of the Hugging Face Hub in the agent's cache; the download itself is a child's work."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason
from parsyn_worker.child import Child
from parsyn_worker.config import AgentConfig
from parsyn_worker.environment import hub_environment
from parsyn_worker.events import DoneEvent, DownloadOrder, FailedEvent, PhaseEvent, task_events
from parsyn_worker.failures import died


@dataclass(frozen=True)
class HubModel:
    """A snapshot on disk. `facts` as of `DownloadSpec`; empty when it was here already."""

    path: Path
    facts: dict[str, Any] = field(default_factory=dict)


class HubModels:
    """Snapshots below `CACHE_DIR/hub`, each fetched once."""

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
        self.root = config.cache_dir / "hub"
        self._fetching: dict[str, asyncio.Lock] = {}

    async def model(
        self, hub_id: str, revision: str | None, progress: Callable[[int, int], None]
    ) -> HubModel:
        """The snapshot of a pinned revision, without asking the Hub when it is here.

        Raises TaskFailure `model_unavailable` with the reason.
        """
        async with self._fetching.setdefault(f"{hub_id}@{revision}", asyncio.Lock()):
            found = self._here(hub_id, revision)
            return found or await self.download(hub_id, revision, progress)

    async def download(
        self,
        hub_id: str,
        revision: str | None,
        progress: Callable[[int, int], None],
        log: Callable[[str], None] = lambda _: None,
    ) -> HubModel:
        """Fetch what is missing of a revision (a branch's newest commit) and describe it."""
        env = hub_environment(self.config)
        child = await Child.start("parsyn_worker.download", env, lambda _, text: log(text))
        order = DownloadOrder(hub_id=hub_id, revision=revision, root=self.root)
        try:
            await child.send(order.model_dump_json().encode())
            answer = await _answer(child, progress)
        except ConnectionError:
            answer = None
        finally:
            status = await child.close()
        if answer is None:
            raise _failure(FailedEvent(failure=died(status, child.tail)))
        if isinstance(answer, FailedEvent):
            raise _failure(answer)
        assert answer.folder is not None
        return HubModel(answer.folder, answer.facts)

    def _here(self, hub_id: str, revision: str | None) -> HubModel | None:
        try:
            path = Path(json.loads(marker(self.root, hub_id, revision or "").read_text())["path"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return HubModel(path) if (path / "config.json").exists() else None


def marker(root: Path, hub_id: str, revision: str) -> Path:
    """The file that says that a snapshot is complete, and where it is."""
    name = hashlib.sha256(f"{hub_id}@{revision}".encode()).hexdigest()[:32]
    return root / "complete" / f"{name}.json"


async def _answer(
    child: Child, progress: Callable[[int, int], None]
) -> DoneEvent | FailedEvent | None:
    async for line in child.events():
        event = task_events.validate_json(line)
        if isinstance(event, PhaseEvent):
            progress(event.done or 0, event.total or 0)
        elif isinstance(event, DoneEvent | FailedEvent):
            return event
    await child.process.wait()
    return None


def _failure(event: FailedEvent) -> TaskFailure:
    failure = event.failure
    return TaskFailure(
        FailureReason(failure.reason), failure.message, line=failure.line, advice=failure.advice
    )
