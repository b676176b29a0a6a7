"""Speeds of finished tasks, and what they say of the next one like it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from parsyn.clock import now
from parsyn.services.context import Context
from parsyn.services.machines import Machine, Profile, device_of
from parsyn.services.needs import Needs
from parsyn.store.jobs import Job, Speed, Task
from parsyn.store.workers import Worker
from parsyn.wire.tasks import Manifest

log = logging.getLogger(__name__)
LATEST = 5
"""So many of the latest runs are looked at; their median counts."""
REMEMBERED = 2000
"""Runs that are looked through for each kind of task."""
EFFICIENCY = 0.3
"""The part of the measured matrix speed that a training reaches, where nothing better is known."""
LOADING_SECONDS = 10.0
"""Until the first step, where nothing better is known."""
FLOPS_PER_TOKEN = {"full": 6, "frozen": 4, "forward": 2}
"""For each parameter: 2 forward, 2 for the gradient of the activations, 2 for that of the weights
(Kaplan et al. 2020, section 2.1); a frozen base needs no gradient of its weights."""


# --- keeping ---------------------------------------------------------------------------------


def keep(context: Context, task: Task, job: Job, manifest: Manifest) -> None:
    """Remember how fast a task was that has just completed; nothing where it cannot be told."""
    try:
        with context.database.peewee.atomic():
            _keep(context, task, job, manifest)
    except Exception:
        # A forecast may be worse for it; the job is done all the same.
        log.exception("the speed of job %d is not remembered", job.id)


def _keep(context: Context, task: Task, job: Job, manifest: Manifest) -> None:
    needs = Needs.from_dict(task.needs)
    if needs.method is None or needs.parameters is None or task.worker_id is None:
        return
    facts: Mapping[str, Any] = manifest.facts
    seconds = _number(facts.get("duration_seconds")) or now() - (task.started_at or now())
    whole = task.resume is None
    tokens = _number(facts.get("trained_tokens")) or needs.tokens if whole else None
    rate = _measured_rate(context, job) or (tokens / seconds if tokens and seconds > 0 else None)
    if rate is None or rate <= 0 or seconds <= 0:
        return
    worker = Worker.get_by_id(task.worker_id)
    values = {
        "worker": worker,
        "gpu": device_of(worker.hardware or {})[:250],
        "architecture": (needs.architecture or "")[:250],
        "parameters": needs.parameters,
        "method": needs.method[:250],
        "sequence_length": needs.length or 0,
        "tokens_per_second": rate,
        "tokens": int(tokens) if tokens else None,
        "seconds": seconds,
    }
    Speed.delete().where(Speed.job == job.id).execute()
    Speed.create(job=job.id, **values)


def _number(value: Any) -> float | None:
    """A finite positive number of a manifest, which an agent wrote; None for anything else."""
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if sound else None


def _measured_rate(context: Context, job: Job) -> float | None:
    """The median of what a training said at its steps: without loading and evaluating."""
    if job.kind != "training":
        return None
    series = context.metrics.series(job.id, ["tokens_per_second"]).get("tokens_per_second", [])
    rates = [value for _, _, value in series if value > 0]
    return median(rates) if rates else None


# --- forecasting -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Forecast:
    """`seconds` of the whole run, None where its tokens are not known. `sure` is a forecast that
    rests on something measured. `basis` ends the sentence "known …"."""

    tokens_per_second: float
    seconds: float | None
    basis: str
    sure: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `Speed`; `overhead` are the seconds in which it did not train."""

    worker_id: int | None
    device: str
    architecture: str
    parameters: int
    length: int
    rate: float
    overhead: float


class Forecaster:
    """Forecasts of one kind of task for any machine. `scores` of the fleet, by worker."""

    def __init__(self, needs: Needs, runs: Iterable[Run], scores: Mapping[int, float]) -> None:
        self.needs = needs
        self._scores = scores
        self._alike: dict[Any, list[Run]] = defaultdict(list)
        self._other: dict[Any, list[Run]] = defaultdict(list)
        self._any: list[Run] = []
        self._known: dict[int, Forecast] = {}
        for run in runs:
            self._sort_in(run)

    def _sort_in(self, run: Run) -> None:
        """Runs come newest first; five of a kind are enough."""
        places = [self._other]
        if self._is_alike(run):
            places.append(self._alike)
        for place in places:
            for key in filter(None, (run.worker_id, run.device)):
                if len(place[key]) < LATEST:
                    place[key].append(run)
        if len(self._any) < LATEST and self._scores.get(run.worker_id or 0):
            self._any.append(run)

    def _is_alike(self, run: Run) -> bool:
        needs = self.needs
        return (
            run.architecture == (needs.architecture or "")
            and run.parameters == needs.parameters
            and run.length.bit_length() == (needs.length or 0).bit_length()
        )

    def of(self, machine: Machine) -> Forecast | None:
        """The best that can be said; None where the model's size is not known."""
        if not self.needs.parameters:
            return None
        if machine.id in self._other:
            return self._forecast_for(machine.id, machine.profile)
        profile = machine.profile
        # Profiles are made once for each hardware, so they are compared by identity.
        known = self._known.get(id(profile))
        if known is None:
            known = self._known[id(profile)] = self._forecast_for(None, profile)
        return known

    def _forecast_for(self, machine_id: int | None, profile: Profile) -> Forecast:
        places = ((machine_id, "this machine"), (profile.device, profile.device))
        for group, like in ((self._alike, "like this"), (self._other, "of other sizes or lengths")):
            for key, place in places:
                if found := group.get(key):
                    return self._from(found, 1.0, f"{_runs(found)} {like} on {place}")
        if self._any and profile.score and profile.measured:
            text = f"{_runs(self._any)} elsewhere and its score of {profile.score:.3g}"
            return self._from(self._any, profile.score, text)
        return self._from_score(profile)

    def _from(self, runs: Sequence[Run], score: float, basis: str) -> Forecast:
        """By the runs, scaled by size, and by score where they ran on other devices."""
        parameters = self.needs.parameters or 1
        rates = []
        for run in runs:
            other = self._scores.get(run.worker_id or 0, 0.0) if runs is self._any else 1.0
            rates.append(run.rate * run.parameters / parameters * score / (other or score))
        return self._forecast(median(rates), median(run.overhead for run in runs), basis, True)

    def _from_score(self, profile: Profile) -> Forecast:
        parameters = self.needs.parameters or 1
        rate = EFFICIENCY * profile.tflops * 1e12 / (self._flops() * parameters)
        basis = "its score" if profile.measured else "an assumed score; it was not measured yet"
        return self._forecast(rate, LOADING_SECONDS, basis, profile.measured)

    def _flops(self) -> int:
        method = self.needs.method or ""
        if " " not in method:
            return FLOPS_PER_TOKEN["forward"]
        return FLOPS_PER_TOKEN["full" if method.endswith(" full") else "frozen"]

    def _forecast(self, rate: float, overhead: float, basis: str, sure: bool) -> Forecast:
        tokens = self.needs.tokens
        if tokens is not None:
            tokens = round(tokens * (1 - self.needs.done))
        seconds = tokens / rate + overhead if tokens is not None and rate > 0 else None
        return Forecast(rate, seconds, f"from {basis}", sure)


def _runs(runs: Sequence[Run]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"


def forecaster(needs: Needs, fleet: Iterable[Machine]) -> Forecaster:
    """With the latest runs of this method."""
    scores = {machine.id: machine.profile.score for machine in fleet}
    return Forecaster(needs, _latest(needs.method) if needs.parameters else (), scores)


def _latest(method: str | None) -> list[Run]:
    columns = (
        Speed.worker, Speed.gpu, Speed.architecture, Speed.parameters, Speed.sequence_length,
        Speed.tokens_per_second, Speed.tokens, Speed.seconds,
    )  # fmt: skip
    rows = Speed.select(*columns).where(Speed.method == method).order_by(Speed.id.desc())
    return [
        Run(worker, gpu, architecture, parameters, length, rate,
            max(0.0, seconds - tokens / rate) if tokens else 0.0)
        for worker, gpu, architecture, parameters, length, rate, tokens, seconds
        in rows.limit(REMEMBERED).tuples()
    ]  # fmt: skip
