"""What finished tasks say of the next one: the nearest run counts, and its words say which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from parsyn import clock
from parsyn.services import evaluations, machines, speeds
from parsyn.services.context import Context
from parsyn.services.machines import Machine
from parsyn.services.needs import Needs
from parsyn.services.speeds import Forecaster, Run
from parsyn.store.datasets import Dataset
from parsyn.store.jobs import Job, Speed, Task
from parsyn.store.models import Model
from parsyn.store.workers import Worker
from parsyn.wire.api.models import EvaluationIn
from parsyn.wire.states import StatsStatus
from tests.services.job_world import World

NEEDS = Needs(
    method="sft lora", architecture="LlamaForCausalLM", parameters=1_000_000_000, length=512,
    tokens=1_000_000,
)  # fmt: skip
RUN = Run(
    worker_id=1, device="RTX 4090", architecture="LlamaForCausalLM", parameters=1_000_000_000,
    length=512, rate=5000.0, overhead=20.0,
)  # fmt: skip


def machine(score: float = 100.0, tflops: float = 160.0) -> Machine:
    benchmark = f'{{"score": {score}, "tflops": {tflops}, "fallback": false}}' if score else "{}"
    profile = machines._profile('{"gpu": "RTX 4090"}', benchmark)
    return Machine(
        1, "rig", 1, 1, "user", "both", "idle", True, False, False, False, profile, {}, None
    )


def test_runs_like_it_on_the_same_machine_come_first() -> None:
    runs = [replace(RUN, rate=rate) for rate in (4000.0, 6000.0, 5000.0)]
    elsewhere = replace(RUN, worker_id=2, rate=9000.0)
    found = Forecaster(NEEDS, [elsewhere, *runs], {1: 100.0, 2: 100.0}).of(machine())
    assert found is not None
    assert found.tokens_per_second == 5000
    assert found.seconds == 1_000_000 / 5000 + 20
    assert (found.basis, found.sure) == ("from 3 runs like this on this machine", True)


def test_only_the_latest_five_count() -> None:
    runs = [replace(RUN, rate=5000.0)] * 5 + [replace(RUN, rate=1.0)] * 50
    found = Forecaster(NEEDS, runs, {}).of(machine())
    assert found is not None
    assert found.tokens_per_second == 5000


@pytest.mark.parametrize(
    ("run", "rate", "basis"),
    [
        (replace(RUN, worker_id=2), 5000, "from 1 run like this on RTX 4090"),
        (
            replace(RUN, parameters=500_000_000),
            2500,
            "from 1 run of other sizes or lengths on this machine",
        ),
        (
            replace(RUN, worker_id=2, length=4096),
            5000,
            "from 1 run of other sizes or lengths on RTX 4090",
        ),
        (
            replace(RUN, worker_id=2, device="H100"),
            2500,
            "from 1 run elsewhere and its score of 100",
        ),
    ],
)
def test_what_is_less_alike_is_scaled(run: Run, rate: float, basis: str) -> None:
    found = Forecaster(NEEDS, [run], {1: 100.0, 2: 200.0}).of(machine())
    assert found is not None
    assert found.tokens_per_second == pytest.approx(rate)
    assert found.basis == basis


def test_a_run_on_a_machine_that_was_removed_is_not_this_machines() -> None:
    found = Forecaster(NEEDS, [replace(RUN, worker_id=None, device="H100")], {}).of(machine())
    assert found is not None
    assert found.basis == "from its score"


def test_without_any_run_the_score_counts() -> None:
    fast = Forecaster(NEEDS, [], {}).of(machine(tflops=100.0))
    assert fast is not None
    assert fast.tokens_per_second == pytest.approx(speeds.EFFICIENCY * 1e14 / 4e9)
    assert (fast.basis, fast.sure) == ("from its score", True)
    unknown = Forecaster(NEEDS, [], {}).of(machine(score=0.0))
    assert unknown is not None
    assert unknown.tokens_per_second < fast.tokens_per_second
    assert not unknown.sure


def test_of_a_model_of_unknown_size_nothing_is_said() -> None:
    assert Forecaster(replace(NEEDS, parameters=None), [RUN], {}).of(machine()) is None
    no_tokens = Forecaster(replace(NEEDS, tokens=None), [RUN], {}).of(machine())
    assert no_tokens is not None
    assert no_tokens.seconds is None


# --- kept by the hub -------------------------------------------------------------------------


@pytest.fixture
def world(context: Context) -> World:
    return stocked(context)


@pytest.fixture
def any_world(any_context: Context) -> World:
    """`world`, once on each database."""
    return stocked(any_context)


def stocked(context: Context) -> World:
    world = World(context)
    with context.database.transaction():
        Model.update(parameters=135_000_000, context_length=2048).execute()
        stats = {"tokens": {"total": 20_000, "max": 300}}
        Dataset.update(stats=stats, stats_status=StatsStatus.READY).execute()
    return world


def test_a_finished_training_is_remembered_and_foretells_the_next(any_world: World) -> None:
    world = any_world
    rig, _ = world.worker("rig")
    job = world.start()
    key = world.run(job, rig)
    points = [(job, "tokens_per_second", step, 1, 0.0, rate)
              for step, rate in enumerate([900.0, 1000.0, 1100.0], 1)]  # fmt: skip
    world.context.metrics.put("metric_points", points).result()
    world.complete(rig, key, trained_tokens=60_000, duration_seconds=75.0)
    with world.context.database.connection():
        row = Speed.get()
        assert (row.tokens_per_second, row.tokens, row.seconds) == (1000.0, 60_000, 75.0)
        assert (row.method, row.parameters, row.sequence_length) == ("sft lora", 135_000_000, 300)
        assert row.worker_id == rig
    again = world.start()
    world.dispatch()
    placement = world.job(again).placement
    assert placement["chosen"]["basis"] == "from 1 run like this on this machine"
    assert placement["tokens"] == 3 * 20_000
    assert placement["chosen"]["predicted_seconds"] == pytest.approx(60 + 15)


def test_what_a_checkpoint_holds_need_not_be_trained_again(world: World) -> None:
    rig, _ = world.worker("rig")
    job = world.start()
    key = world.run(job, rig)
    world.write(lambda: Job.update(progress={"total_steps": 40}).execute())
    world.checkpoint(rig, key, 30)
    first = world.job(job).placement["chosen"]["predicted_seconds"]
    world.fail(rig, key, "preempted")
    world.dispatch()
    assert world.task(job).needs["done"] == 0.75
    again = world.job(job).placement["chosen"]["predicted_seconds"]
    loading = speeds.LOADING_SECONDS
    assert again - loading == pytest.approx((first - loading) / 4, rel=0.01)


def test_a_resumed_training_tells_its_speed_not_its_overhead(world: World) -> None:
    rig, _ = world.worker("rig")
    job = world.start()
    key = world.run(job, rig)
    with world.context.database.transaction():
        Task.update(resume={"step": 5, "attempt": 1, "files": []}).execute()
    world.context.metrics.put(
        "metric_points", [(job, "tokens_per_second", 1, 1, 0.0, 500.0)]
    ).result()
    world.complete(rig, key, trained_tokens=60_000, duration_seconds=5.0)
    with world.context.database.connection():
        row = Speed.get()
        assert (row.tokens_per_second, row.tokens) == (500.0, None)


@pytest.mark.parametrize(
    "facts",
    [
        {"trained_tokens": "many", "duration_seconds": [1]},
        {"trained_tokens": float("inf"), "duration_seconds": -3},
        {"trained_tokens": True},
    ],
)
def test_an_agent_that_tells_nonsense_spoils_nothing(world: World, facts: Any) -> None:
    rig, _ = world.worker("rig")
    job = world.start()
    world.complete(rig, world.run(job, rig), **facts)
    assert world.job(job).status == "completed"
    with world.context.database.connection():
        assert all(row.tokens_per_second > 0 for row in Speed.select())


def test_a_removed_worker_leaves_its_speeds(any_world: World) -> None:
    world = any_world
    rig, _ = world.worker("rig")
    job = world.start()
    world.complete(rig, world.run(job, rig), trained_tokens=10, duration_seconds=1.0)
    with world.context.database.transaction():
        Task.update(worker=None).execute()
        Worker.delete().where(Worker.id == rig).execute()
        assert Speed.get().worker_id is None


def test_an_evaluation_is_remembered_by_its_tokens(world: World) -> None:
    rig, _ = world.worker("rig")
    asked = EvaluationIn(
        model_id=world.model.id, dataset_id=world.dataset.id, evaluator="perplexity"
    )
    job = world.write(evaluations.create, world.context, world.who, asked)["id"]
    key = world.run(job, rig)
    world.write(lambda: Task.update(started_at=clock.now() - 10).execute())
    world.complete(rig, key, metrics={})
    with world.context.database.connection():
        row = Speed.get()
        assert (row.method, row.tokens) == ("perplexity", 20_000)
        assert row.tokens_per_second == pytest.approx(2000, rel=0.2)
