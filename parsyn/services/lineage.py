"""Where a model comes from and what came of it, as a graph of what its viewer may see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parsyn.services import models
from parsyn.services.principal import Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.store.projects import visible
from parsyn.wire.states import JobKind

MOST_MODELS = 200
NODE_OF = {JobKind.EXPORT: "export", JobKind.EVALUATION: "evaluation"}


def graph(who: Principal, model_id: int) -> dict[str, Any]:
    """The model, its bases up to the first, and everything that was made of it."""
    row = models.find(who, model_id)
    found = _Graph()
    for model in [*_bases(who, row), row, *_descendants(who, row)]:
        found.add_model(model)
    made_by = {model.training_job_id: model for model in found.models.values()}
    jobs = list(
        Job.select().where(
            visible(Job, who.user_id)
            & (Job.id.in_([id for id in made_by if id]) | (Job.model == row))
            & (Job.kind != JobKind.IMPORT)
        )
    )
    for job in jobs:
        found.add_job(job, made_by.get(job.id))
    found.add_datasets(who, jobs)
    found.add_plain_bases({job.id for job in jobs})
    return {"nodes": list(found.nodes.values()), "edges": found.edges}


class _Graph:
    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: list[dict[str, str]] = []
        self.models: dict[int, Model] = {}

    def add_model(self, row: Model) -> None:
        self.models[row.id] = row
        self._node("model", row.id, row.name, row.state)

    def add_job(self, job: Job, made: Model | None) -> None:
        if job.kind == JobKind.TRAINING and made is None:
            return
        kind = NODE_OF.get(JobKind(job.kind), "job")
        self._node(kind, job.id, job.name, job.status)
        if job.model_id in self.models:
            self._edge(f"model:{job.model_id}", f"{kind}:{job.id}", "base")
        if made is not None:
            self._edge(f"{kind}:{job.id}", f"model:{made.id}", "made")

    def add_datasets(self, who: Principal, jobs: Iterable[Job]) -> None:
        wanted = {job.dataset_id for job in jobs if job.dataset_id}
        rows = Dataset.select(Dataset.id, Dataset.name, Dataset.status).where(
            Dataset.id.in_(list(wanted)) & visible(Dataset, who.user_id)
        )
        for row in rows:
            self._node("dataset", row.id, row.name, row.status)
        for job in jobs:
            node = f"{NODE_OF.get(JobKind(job.kind), 'job')}:{job.id}"
            if node in self.nodes and f"dataset:{job.dataset_id}" in self.nodes:
                self._edge(f"dataset:{job.dataset_id}", node, "data")

    def add_plain_bases(self, shown_jobs: set[int]) -> None:
        """Where the job between two models is gone, the models are tied directly."""
        for row in self.models.values():
            if row.base_model_id in self.models and row.training_job_id not in shown_jobs:
                self._edge(f"model:{row.base_model_id}", f"model:{row.id}", "base")

    def _node(self, kind: str, id: int, name: str, status: str) -> None:
        key = f"{kind}:{id}"
        self.nodes[key] = {"key": key, "kind": kind, "id": id, "name": name, "status": status}

    def _edge(self, source: str, target: str, label: str) -> None:
        self.edges.append({"source": source, "target": target, "label": label})


def _bases(who: Principal, row: Model) -> list[Model]:
    """The bases of a model, the first one first, as far as they are visible without a gap."""
    found: list[Model] = []
    base_id = row.base_model_id
    while base_id is not None and len(found) < MOST_MODELS:
        base = Model.get_or_none((Model.id == base_id) & visible(Model, who.user_id))
        if base is None:
            break
        found.append(base)
        base_id = base.base_model_id
    return found[::-1]


def _descendants(who: Principal, row: Model) -> list[Model]:
    found: dict[int, Model] = {}
    parents = [row.id]
    while parents and len(found) < MOST_MODELS:
        rows = Model.select().where(Model.base_model.in_(parents) & visible(Model, who.user_id))
        fresh = {child.id: child for child in rows if child.id not in found}
        found |= fresh
        parents = list(fresh)
    return list(found.values())[:MOST_MODELS]
