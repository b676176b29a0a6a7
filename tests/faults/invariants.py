"""What must be true of the stores after whatever happened."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from parsyn.services import checkpoints, jobs
from parsyn.store.jobs import Artifact, Checkpoint, Job, JobEvent, StoredObject, Task
from parsyn.store.metrics import MetricsStore
from parsyn.store.models import Model, ModelFile
from parsyn.store.outbox import Outbox
from parsyn.wire.states import JOB_TERMINAL, JOB_TRANSITIONS, JobStatus
from tests.faults.agent_process import ADAPTER, chain, loss_of
from tests.faults.people import Asked

if TYPE_CHECKING:
    from tests.faults.case import Case


class Lost(AssertionError):
    """Work that was accepted did not come to its end, or part of it is missing."""


class Doubled(AssertionError):
    """Something took effect twice."""


class Wrong(AssertionError):
    """Something that must not be."""


def check(case: Case) -> None:
    """Raise Lost, Doubled or Wrong."""
    with case.base.database.connection():
        for job in case.person.accepted:
            _job(case, job)
        _nothing_else(case)
        _every_effect_once(case)
        _stored_as_said(case)
    for agent in case.agents:
        _require(not agent.damaged, Wrong, "; ".join(agent.damaged))
        _require(not agent.broken, Wrong, f"{agent.name} broke: {agent.broken}")
    _require(not case.witness.late, Wrong, "; ".join(case.witness.late))
    _require(not case.effects.contradictions, Wrong, str(case.effects.contradictions))


def _require(holds: object, kind: type[AssertionError], otherwise: str) -> None:
    if not holds:
        raise kind(otherwise)


def _job(case: Case, asked: Asked) -> None:
    job = Job.get_or_none(Job.id == asked.id)
    _require(job is not None, Lost, f"{asked.name} is gone")
    _timeline(job)
    if asked.stopped and job.status == JobStatus.CANCELLED:
        models = Model.select().where(Model.training_job_id == job.id).count()
        _require(models == 0, Wrong, f"{asked.name} was stopped and left a model")
        return
    _require(
        job.status == JobStatus.COMPLETED, Lost, f"{asked.name} ended {job.status}: {job.failure}"
    )
    _one_result(case, job, asked)
    _every_step(case, job, asked)
    left = jobs.unneeded_keys(job)
    _require(not left, Wrong, f"stored and named by nothing: {sorted(left)}")
    if case.harmless:
        attempt = Task.get(Task.job == job.id).attempt
        _require(attempt == 1, Wrong, f"{job.name} was requeued for nothing: attempt {attempt}")


def _timeline(job: Job) -> None:
    rows = list(JobEvent.select().where(JobEvent.job == job.id).order_by(JobEvent.id))
    walk = [row.status for row in rows if row.status in set(JobStatus)]
    ends = [status for status in walk if status in JOB_TERMINAL]
    _require(len(ends) <= 1, Doubled, f"{job.name} ended {len(ends)} times: {walk}")
    for before, after in pairwise(walk):
        allowed = before == after or after in JOB_TRANSITIONS[JobStatus(before)]
        _require(allowed, Wrong, f"{job.name} went from {before} to {after}")
    attempts = [row.attempt for row in rows]
    _require(attempts == sorted(attempts), Wrong, f"attempts of {job.name}: {attempts}")


def _one_result(case: Case, job: Job, asked: Asked) -> None:
    models = list(Model.select().where(Model.training_job_id == job.id))
    _require(len(models) == 1, Doubled if models else Lost, f"{job.name} has {len(models)} models")
    task = Task.get(Task.job == job.id)
    artifacts = list(Artifact.select().where(Artifact.job == job.id))
    paths = Counter(row.path for row in artifacts)
    _require(paths == {"adapter_config.json": 1, ADAPTER: 1}, Doubled, f"artifacts: {paths}")
    for row in artifacts:
        own = f"tasks/{task.id}/{task.attempt}/"
        _require(row.key.startswith(own), Wrong, f"{row.key} is not of attempt {task.attempt}")
    file = ModelFile.get((ModelFile.model == models[0].id) & (ModelFile.path == ADAPTER))
    body = b"".join(case.base.storage.get(file.key))
    _require(
        body == chain(asked.steps), Wrong, f"{job.name} is not what an uninterrupted run makes"
    )


def _every_step(case: Case, job: Job, asked: Asked) -> None:
    metrics = MetricsStore(case.base.database.url, case.base.settings.data_dir)
    points = metrics.series(job.id, ["loss"]).get("loss", [])
    steps = [step for step, _, _ in points]
    _require(steps == list(range(1, asked.steps + 1)), Lost, f"{job.name} has the steps {steps}")
    for step, _, value in points:
        _require(value == loss_of(chain(step)), Wrong, f"the loss at step {step} is another")
    lines = Counter((attempt, text) for _, _, _, text, attempt in metrics.logs(job.id))
    twice = [line for line, count in lines.items() if count > 1 and line[1].startswith("step")]
    _require(not twice, Doubled, f"{job.name} logged twice: {twice}")
    last = Task.get(Task.job == job.id).attempt
    said = [int(t.split()[1]) for a, t in lines if a == last and t.startswith("step")]
    whole = list(range(min(said), asked.steps + 1)) if said else []
    _require(sorted(said) == whole, Lost, f"{job.name} lost log lines: {sorted(said)}")


def _nothing_else(case: Case) -> None:
    names = Counter(row.name for row in Job.select())
    twice = [name for name, count in names.items() if count > 1]
    _require(not twice, Doubled, f"jobs were made twice: {twice}")
    made = Model.select().where(Model.source == "training").count()
    done = Job.select().where(Job.status == JobStatus.COMPLETED).count()
    _require(made == done, Doubled, f"{done} jobs made {made} models")


def _every_effect_once(case: Case) -> None:
    for row in Outbox.select():
        _require(row.done_at is not None, Lost, f"effect {row.id} ({row.kind}) never happened")
        if row.kind.startswith("hook:"):
            _require(row.id in case.effects.seen, Lost, f"nobody was told of effect {row.id}")


def _stored_as_said(case: Case) -> None:
    for row in Checkpoint.select():
        _require(checkpoints.verifies(case.base, row), Wrong, f"checkpoint {row.id} is damaged")
    lie = hashlib.sha256(b"lie").hexdigest()
    for row in StoredObject.select():
        _require(row.sha256 != lie, Wrong, f"{row.key} was stored by a liar")
        body = b"".join(case.base.storage.get(row.key))
        right = (len(body), hashlib.sha256(body).hexdigest()) == (row.size, row.sha256)
        _require(right, Wrong, f"{row.key} is not what its row says")
    for row in ModelFile.select():
        body = b"".join(case.base.storage.get(row.key))
        right = hashlib.sha256(body).hexdigest() == row.sha256
        _require(right, Wrong, f"{row.key} of a model is not what its row says")
