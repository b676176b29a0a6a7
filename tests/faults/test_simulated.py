"""Fleets at work under bad luck, each drawn from a seed; nothing is lost and nothing doubled."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from tests.faults.invariants import Doubled, Lost, Wrong
from tests.faults.pool import Outcome

pytestmark = pytest.mark.fault_case
KINDS = {"Lost": Lost, "Doubled": Doubled}


def test_case(simulated: str, outcomes: dict[str, Future[Outcome]]) -> None:
    if simulated not in outcomes:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    outcome = outcomes[simulated].result()
    if outcome.kind:
        kind = KINDS.get(outcome.kind, Wrong)
        story = "\n".join(outcome.story)
        raise kind(f"{outcome.kind}: {outcome.message}\nWhat was done to it:\n{story}")
