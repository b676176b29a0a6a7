"""The order of the queue, for any mixture of people, priorities and positions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from parsyn.services.queue import Waiting, ordered

ROWS = st.lists(
    st.builds(
        lambda user, priority, key: (user, priority, key),
        st.integers(1, 4), st.sampled_from([-1, 0, 1]), st.integers(0, 50),
    ),
    max_size=30,
).map(
    lambda found: [
        Waiting(task_id=n, job_id=n, user_id=user, priority=priority, key=float(key))
        for n, (user, priority, key) in enumerate(found, 1)
    ]
)  # fmt: skip
RUNNING = st.dictionaries(st.integers(1, 4), st.integers(0, 5))


def waiting(id: int, user: int, key: float, priority: int = 0) -> Waiting:
    return Waiting(task_id=id, job_id=id, user_id=user, priority=priority, key=key)


def test_who_has_nothing_running_goes_before_who_has_three() -> None:
    rows = [waiting(1, user=1, key=1), waiting(2, user=1, key=2), waiting(3, user=2, key=9)]
    assert [row.task_id for row in ordered(rows, {1: 3})] == [3, 1, 2]
    assert [row.task_id for row in ordered(rows, {})] == [1, 3, 2]
    assert [row.task_id for row in ordered(rows, {2: 2})] == [1, 2, 3]


def test_a_hundred_jobs_of_one_do_not_hold_up_another() -> None:
    rows = [waiting(n, user=1, key=n) for n in range(1, 101)] + [waiting(200, user=2, key=500)]
    assert [row.task_id for row in ordered(rows, {})][:3] == [1, 200, 2]


@given(ROWS, RUNNING)
def test_each_waits_exactly_once(rows: list[Waiting], running: dict[int, int]) -> None:
    assert Counter(ordered(rows, running)) == Counter(rows)


@given(ROWS, RUNNING)
def test_a_higher_priority_always_goes_before(rows: list[Waiting], running: dict[int, int]) -> None:
    found = [row.priority for row in ordered(rows, running)]
    assert found == sorted(found, reverse=True)


@given(ROWS, RUNNING)
def test_a_persons_own_order_is_kept(rows: list[Waiting], running: dict[int, int]) -> None:
    found = ordered(rows, running)
    for user, priority in {(row.user_id, row.priority) for row in rows}:
        mine = [(row.key, row.task_id) for row in found
                if (row.user_id, row.priority) == (user, priority)]  # fmt: skip
        assert mine == sorted(mine)


@given(ROWS, RUNNING)
def test_nobody_gets_ahead_of_who_has_fewer(rows: list[Waiting], running: dict[int, int]) -> None:
    """When a job's turn comes, nobody of its priority who still waits has fewer than its user."""
    found = ordered(rows, running)
    ahead = Counter(running)
    for place, row in enumerate(found):
        waits = {other.user_id for other in found[place:] if other.priority == row.priority}
        assert all(ahead[row.user_id] <= ahead[user] for user in waits)
        ahead[row.user_id] += 1


@given(ROWS, RUNNING, st.randoms())
def test_the_order_does_not_depend_on_how_it_was_read(
    rows: list[Waiting], running: dict[int, int], random: object
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ordered(shuffled, running) == ordered(rows, running)
