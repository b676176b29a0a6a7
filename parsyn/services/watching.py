"""What a dashboard may watch, and how it stands when it begins to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parsyn.errors import not_found
from parsyn.services import datasets, job_shapes, workers
from parsyn.services.principal import Principal
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job
from parsyn.store.models import Model
from parsyn.store.projects import Owned, role_on, visible
from parsyn.store.workers import Worker
from parsyn.wire.api.datasets import DatasetOut
from parsyn.wire.api.workers import WorkerOut

OWNED: dict[str, type[Owned]] = {"job": Job, "dataset": Dataset, "model": Model}
LARGEST_ID = 2**31 - 1


def topics_of(who: Principal, topic: str) -> frozenset[str]:
    """The inner topics that `topic` stands for. Raises 404 for what is not theirs to see."""
    if topic == "fleet":
        return frozenset(workers.fleet_topic(id) for id in workers.project_ids(who.user_id))
    if topic == "notifications":
        return frozenset({f"notifications:{who.user_id}"})
    kind, _, number = topic.partition(":")
    id = int(number) if number.isascii() and number.isdigit() and len(number) < 11 else 0
    if not 0 < id <= LARGEST_ID or not _sees(who, kind, id):
        raise not_found("topic")
    return frozenset({f"{kind}:{id}"})


def _sees(who: Principal, kind: str, id: int) -> bool:
    if kind == "project":
        return role_on(id, who.user_id) is not None
    table = OWNED.get(kind)
    if table is None:
        return False
    return bool(table.select().where((table.id == id) & visible(table, who.user_id)).exists())


def snapshot(who: Principal, topic: str) -> dict[str, Any]:
    """What GET answers for a topic's subject now, by its noun; empty for topics without one."""
    kind, _, number = topic.partition(":")
    take: Callable[[int], dict[str, Any]] | None = {"job": _job, "dataset": _dataset}.get(kind)
    if take is not None:
        return take(int(number))
    return {"workers": _fleet(who)} if topic == "fleet" else {}


def _job(id: int) -> dict[str, Any]:
    row = Job.get_or_none(Job.id == id)
    return {"job": job_shapes.as_event(row)} if row is not None else {}


def _dataset(id: int) -> dict[str, Any]:
    row = Dataset.get_or_none(Dataset.id == id)
    if row is None:
        return {}
    return {"dataset": DatasetOut.model_validate(datasets.as_out(row)).model_dump(mode="json")}


def _fleet(who: Principal) -> list[dict[str, Any]]:
    rows = workers.as_outs(Worker.select().where(workers.of_user(who)).order_by(Worker.name), who)
    return [WorkerOut.model_validate(row).model_dump(mode="json") for row in rows]
