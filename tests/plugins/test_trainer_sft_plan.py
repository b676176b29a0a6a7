"""What `auto` comes to, and which rows go together."""

from __future__ import annotations

from typing import Any

import pytest

from parsyn.plugin.batches import sorted_batches
from parsyn_plugins.trainer_sft import plan
from parsyn_plugins.trainer_sft.batches import LengthGroupedBatches
from parsyn_plugins.trainer_sft.params import SftParams
from parsyn_plugins.trainer_sft.trainer import SftTrainer


def params(**given: Any) -> SftParams:
    return SftTrainer().parse(given)


@pytest.mark.parametrize(
    ("given", "fits", "most", "expected"),
    [
        ({}, 8, 32, (8, 2)),
        ({}, 16, 32, (16, 1)),
        ({}, 16, 4, (4, 4)),
        ({}, 5, 32, (4, 4)),
        ({"batch_size": 2}, 16, 32, (2, 8)),
        ({"batch_size": 3}, 16, 32, (3, 5)),
        ({"batch_size": 64}, 64, 32, (32, 2)),
        ({"batch_size": 4, "gradient_accumulation_steps": 1}, 16, 32, (4, 1)),
        ({"batch_size": 12, "gradient_accumulation_steps": 3}, 16, 5, (4, 9)),
        ({"gradient_accumulation_steps": 4}, 16, 32, (4, 4)),
        ({"gradient_accumulation_steps": 32}, 16, 32, (1, 32)),
    ],
)
def test_batches(given: dict[str, Any], fits: int, most: int, expected: tuple[int, int]) -> None:
    found = plan.batching(params(**given), fits, most)
    assert (found.batch_size, found.accumulation) == expected


@pytest.mark.parametrize(
    ("given", "rows", "with_dataset", "held"),
    [
        ({}, 99, False, 0),
        ({}, 100, False, 5),
        ({}, 100_000, False, 500),
        ({}, 1000, True, 0),
        ({"validation_split": 0.2}, 50, False, 10),
        ({"validation_split": 7}, 50, False, 7),
        ({"validation_split": 80}, 50, False, 49),
        ({"validation_split": 0}, 500, False, 0),
        ({"early_stopping_patience": 2}, 30, False, 3),
        ({}, 1, False, 0),
    ],
)
def test_validation_rows(given: dict[str, Any], rows: int, with_dataset: bool, held: int) -> None:
    assert plan.validation_rows(params(**given), rows, with_dataset) == held


def test_a_schedule_counts_updates() -> None:
    found = plan.schedule(params(epochs=2), 100, plan.Batching(4, 4), validated=True)
    # 25 batches an epoch, in updates of four: six of four and one of one.
    assert (found.steps_per_epoch, found.total_steps) == (7, 14)


@pytest.mark.parametrize(
    ("total", "every"), [(1, 1), (12, 3), (40, 5), (100, 5), (400, 20), (5000, 250)]
)
def test_auto_is_about_twenty_evaluations(total: int, every: int) -> None:
    found = plan.schedule(
        params(max_steps=total, epochs=1000), 10_000, plan.Batching(1, 1), validated=True
    )
    assert (found.total_steps, found.evaluate_every, found.save_every) == (total, every, every)


def test_intervals_and_warm_up_can_be_told() -> None:
    given = params(
        max_steps=200, epochs=50, eval_steps=0.1, save_steps=7, logging_steps=2, warmup_ratio=0.1
    )
    found = plan.schedule(given, 1000, plan.Batching(4, 4), validated=True)
    assert (found.evaluate_every, found.save_every, found.log_every) == (20, 7, 2)
    assert found.warmup_steps == 20
    fixed = params(max_steps=5, warmup_steps=100)
    assert plan.schedule(fixed, 100, plan.Batching(4, 4), validated=False).warmup_steps == 5


def test_a_long_run_logs_a_thousand_times() -> None:
    found = plan.schedule(params(epochs=10), 50_000, plan.Batching(5, 1), validated=False)
    assert found.total_steps == 100_000
    assert found.log_every == 100
    assert found.evaluate_every is None


def test_the_models_context_bounds_auto() -> None:
    assert plan.max_length(params(), 512) == 512
    assert plan.max_length(params(), 8192) == 2048
    assert plan.max_length(params(), None) == 2048
    assert plan.max_length(params(max_seq_length=4096), 8192) == 4096


LENGTHS = [(n * 37) % 211 + 3 for n in range(1001)]


def test_an_epoch_sees_each_row_once() -> None:
    batches = LengthGroupedBatches(LENGTHS, 8, seed=1)
    epoch = list(batches)
    assert len(epoch) == len(batches) == 126
    assert sorted(row for batch in epoch for row in batch) == list(range(1001))
    assert sorted(map(len, epoch))[:2] == [1, 8]


def test_order_depends_on_seed_and_epoch_alone() -> None:
    first, again = (LengthGroupedBatches(LENGTHS, 8, seed=1) for _ in range(2))
    other = LengthGroupedBatches(LENGTHS, 8, seed=2)
    assert list(first) == list(again) != list(other)
    again.set_epoch(1)
    assert list(first) != list(again)
    first.set_epoch(1)
    assert list(first) == list(again)


def test_batches_of_like_length_hold_little_padding() -> None:
    def padded(batches: list[list[int]]) -> int:
        return sum(len(batch) * max(LENGTHS[row] for row in batch) for batch in batches)

    in_order = [list(range(at, min(at + 8, 1001))) for at in range(0, 1001, 8)]
    grouped = padded(list(LengthGroupedBatches(LENGTHS, 8, seed=1)))
    assert grouped < 1.05 * sum(LENGTHS)
    assert padded(in_order) > 1.5 * sum(LENGTHS)


def test_scoring_batches_stay_within_their_size() -> None:
    batches = sorted_batches(LENGTHS, 1000, 16)
    assert sorted(row for batch in batches for row in batch) == list(range(1001))
    assert all(len(batch) <= 16 for batch in batches)
    assert all(len(batch) * LENGTHS[batch[0]] <= 1000 for batch in batches)
    assert sorted_batches([5000, 3], 1000, 16) == [[0], [1]]
